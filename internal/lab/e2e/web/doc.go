// Package web drives the page in a real browser, Debian's Chromium, against the
// real ttmond on simulated hosts.
//
// make test has what must hold of every change, in one browser. With the build
// tag web (make test-web) all views are walked at all widths and in all colours,
// with axe-core looking for faults of accessibility, the real ttnn, and pictures
// of everything in $PAGE_SHOTS.
package web
