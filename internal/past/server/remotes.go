package server

import (
	"context"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/remotewrite"
)

// remotes sends to engines, each by itself.
type remotes struct {
	server *Server

	mu    sync.Mutex
	list  []*remote
	start func(*remote) // while run runs
}

// remote is one engine.
type remote struct {
	cfg    RemoteWrite
	sender *remotewrite.Sender
	stop   context.CancelFunc
	ended  chan struct{} // closed when nothing touches its buffer any more
}

func (s *Server) newRemotes() *remotes {
	r := &remotes{server: s}
	for _, c := range s.cfg.RemoteWrite {
		r.list = append(r.list, &remote{cfg: c})
	}
	return r
}

// run sends until ctx is done.
func (r *remotes) run(ctx context.Context) {
	var wait sync.WaitGroup
	r.mu.Lock()
	r.start = func(x *remote) {
		sender, err := r.server.newSender(&x.cfg)
		if err != nil {
			r.server.log.Error("invalid remote write target; skipping it", "err", err)
			return
		}
		life, stop := context.WithCancel(ctx)
		x.sender, x.stop, x.ended = sender, stop, make(chan struct{})
		wait.Go(func() { r.server.serveRemote(life, x) })
	}
	for _, x := range r.list {
		r.start(x)
	}
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.start = nil
	r.mu.Unlock()
	wait.Wait()
}

// serveRemote samples and sends until ctx is done.
func (s *Server) serveRemote(ctx context.Context, x *remote) {
	defer close(x.ended)
	var both sync.WaitGroup
	both.Go(func() { x.sender.Run(ctx) })
	both.Go(func() {
		s.recorder.recorded.Follow(ctx, func(*model.Snapshot) { x.sender.Enqueue(s.recorder.readLatest) })
	})
	both.Wait()
}

// configure changes the engines. One whose settings are the same continues; one
// whose settings have changed begins with what was buffered for its address.
// It is called by one goroutine at a time.
func (r *remotes) configure(next []RemoteWrite) {
	r.mu.Lock()
	leaving := slices.Clone(r.list)
	var list []*remote
	for _, c := range next {
		x := &remote{cfg: c}
		if i := slices.IndexFunc(leaving, func(o *remote) bool { return reflect.DeepEqual(o.cfg, c) }); i >= 0 {
			x = leaving[i]
			leaving = slices.Delete(leaving, i, i+1)
		}
		list = append(list, x)
	}
	r.list = list
	r.mu.Unlock()
	for _, o := range leaving {
		if o.sender != nil {
			o.stop()
			<-o.ended // its buffer may be another's now; it asks for senders, so not with mu
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range list {
		if x.sender == nil && r.start != nil { // nil: the server ends
			r.start(x)
		}
	}
}

// senders are those that run.
func (r *remotes) senders() (list []*remotewrite.Sender) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.list {
		if x.sender != nil {
			list = append(list, x.sender)
		}
	}
	return list
}

func (s *Server) newSender(c *RemoteWrite) (*remotewrite.Sender, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	external := map[string]string{"host": s.hostName()}
	for k, v := range c.Labels {
		external[k] = v
	}
	h := fnv.New32a()
	h.Write([]byte(c.URL))
	return remotewrite.New(remotewrite.Options{
		URL: c.URL, V2: c.Protocol == "2.0", Interval: c.Interval.Duration, External: external, Headers: c.Headers,
		Dir: filepath.Join(s.cfg.StateDir, "remote-write", fmt.Sprintf("%08x", h.Sum32())), MaxBytes: int64(c.BufferMB) << 20,
		Client: client, Authorize: c.authorize, Log: s.log,
	}), nil
}
