// Package notify tells people of alerts: webhooks (Alertmanager's and Slack's
// JSON), a command run as an unprivileged user, mail through the local
// sendmail.
//
// It stands behind the alerts. Each target has a queue of its own, bounded and
// kept on the disk, so that a receiver that hangs, or is away for an hour,
// delays no other receiver and misses nothing; a message is retried until it is
// accepted.
package notify
