// Package view is the room of those who draw. Snapshots, sheets and tables of fields
// enter; text, cells, HTML, JSON for the page and Prometheus series leave. A view decides
// nothing: what is wrong, and how it is called, it asks collect and field.
package view
