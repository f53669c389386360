// Package board is the catalogue: which Tenstorrent boards exist, how many
// chips are behind each of their PCIe endpoints, their memory and limits; and
// the rules that identify a chip.
//
// Sources and collect use it to identify a device (Identify), to fill in what
// the driver does not say (Complete) and to find the chip of an accounting
// region (Resolver). It is pure data and functions: it reads no file and
// imports only model.
//
// A figure of the catalogue is nominal, and marked so wherever it is shown. A
// figure that is not published is missing, not guessed.
package board
