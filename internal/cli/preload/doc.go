// Package preload embeds libttmon.so in the ttmon binary and writes it to where
// a program can be started with it. It is for `ttmon run`: the library writes
// the ledgers that source/track reads.
//
// The libraries are built by `make lib` (lib/build) from lib/, for both
// architectures, and are kept in the repository so that ttmon builds without a
// C compiler. sources.txt says from which sources, and by which compiler; a
// test fails when they are not those of the tree, or when the same compiler
// makes other bytes of them.
package preload
