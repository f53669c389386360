package unixhttp

import "strconv"

// The status codes that are answered.
const (
	StatusOK                  = 200
	StatusBadRequest          = 400
	StatusForbidden           = 403
	StatusNotFound            = 404
	StatusMethodNotAllowed    = 405
	StatusGone                = 410
	StatusLengthRequired      = 411
	StatusTooLarge            = 413
	StatusUnprocessableEntity = 422
	StatusTooManyRequests     = 429
	StatusHeaderTooLarge      = 431
	StatusInternalServerError = 500
	StatusServiceUnavailable  = 503
	StatusHTTPVersion         = 505
)

var statusText = [...]string{
	StatusOK:                  "OK",
	StatusBadRequest:          "Bad Request",
	StatusForbidden:           "Forbidden",
	StatusNotFound:            "Not Found",
	StatusMethodNotAllowed:    "Method Not Allowed",
	StatusGone:                "Gone",
	StatusLengthRequired:      "Length Required",
	StatusTooLarge:            "Content Too Large",
	StatusUnprocessableEntity: "Unprocessable Entity",
	StatusTooManyRequests:     "Too Many Requests",
	StatusHeaderTooLarge:      "Request Header Fields Too Large",
	StatusInternalServerError: "Internal Server Error",
	StatusServiceUnavailable:  "Service Unavailable",
	StatusHTTPVersion:         "HTTP Version Not Supported",
}

// statusLine is how a status is written; the text is for people, and may be missing.
func statusLine(status int) string {
	text := ""
	if status >= 0 && status < len(statusText) {
		text = statusText[status]
	}
	return "HTTP/1.1 " + strconv.Itoa(status) + " " + text + "\r\n"
}
