package host

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
)

// alertTimeout is how long a ttmon-server may take to answer which alerts fire:
// snapshots do not wait for it.
const alertTimeout = 100 * time.Millisecond

// alertSource asks the ttmon-server which alerts fire. The snapshots of ttmond do
// not say.
type alertSource struct {
	client *client.Client
	retry  time.Time // not before, after a failure
}

// ask returns the alerts that fire; none where no ttmon-server runs at path, or
// where that is the ttmond itself.
func (a *alertSource) ask(ctx context.Context, path, daemon string) []model.Alert {
	if path == "" || path == daemon || time.Now().Before(a.retry) {
		return nil
	}
	if a.client == nil || a.client.Path() != path {
		a.close()
		a.client = client.New(path)
	}
	ctx, cancel := context.WithTimeout(ctx, alertTimeout)
	defer cancel()
	list, err := a.client.Alerts(ctx)
	if err != nil {
		a.retry = time.Now().Add(daemonRetry)
	}
	return list
}

func (a *alertSource) close() {
	if a.client != nil {
		a.client.Close()
		a.client = nil
	}
}
