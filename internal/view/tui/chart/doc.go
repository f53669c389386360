// Package chart draws lines over time in braille dots, two by four to a cell,
// with a scale in real units, marks for events and a cursor.
//
// It stands between history, which gives it one bucket per dot column, and
// the cells of a screen. It decides nothing about which lines to draw.
package chart
