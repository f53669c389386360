// Package board is the catalogue: which Tenstorrent boards exist, how many
// chips sit behind each of their PCIe endpoints, what they hold and where
// their limits are; and the rules by which a chip is told from another one.
//
// It stands beside the data flow. Sources and collect ask it what a device is
// (Identify), let it fill in what the driver did not say (Complete) and which
// chip an accounting region belongs to (Resolver). It is pure data and
// functions: it reads no file and imports only model.
//
// A figure of the catalogue is nominal, and marked so wherever it is shown. A
// figure that nobody published is missing, not guessed.
package board
