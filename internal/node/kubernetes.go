package node

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/stream"
	"github.com/ttmon/ttmon/internal/source/podres"
)

type kubernetesConfig struct {
	PodResources string `toml:"pod_resources" comment:"Socket of the kubelet that tells which pods have which devices, below root; empty: it is not asked."`
}

func defaultKubernetes() kubernetesConfig {
	return kubernetesConfig{PodResources: podres.DefaultSocket}
}

const (
	kubeletEvery = 10 * time.Second // pods come and go at this pace
	kubeletWait  = 2 * time.Second
	kubeletOld   = time.Minute // what it said longer ago is not believed
)

// pods is what the kubelet of the node says, where there is one.
type pods struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	claims []model.PodClaim
	run    stream.Source
	found  bool // there is a kubelet
}

func newPods(c Config, log *slog.Logger) *pods {
	p := &pods{log: log, run: stream.Source{Name: "podresources"}}
	if c.Kubernetes.PodResources != "" {
		p.path = hostfs.At(c.Root).Path(c.Kubernetes.PodResources)
	}
	return p
}

// poll lists pods until ctx is done. On hosts without a kubelet it costs a stat.
func (p *pods) poll(ctx context.Context) error {
	if p.path == "" {
		return nil
	}
	client := podres.New(p.path)
	tick := time.NewTicker(kubeletEvery)
	defer tick.Stop()
	for {
		if _, err := os.Stat(p.path); err == nil {
			p.refresh(ctx, client)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (p *pods) refresh(ctx context.Context, client *podres.Client) {
	ctx, cancel := context.WithTimeout(ctx, kubeletWait)
	defer cancel()
	begin := time.Now()
	list, err := client.List(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := !p.found; err != nil && (first || p.run.OK) && ctx.Err() != context.Canceled {
		p.log.Warn("cannot list pods; identifying them by cgroup only", "err", err)
	}
	p.found, p.run.Duration, p.run.OK = true, time.Since(begin), err == nil
	if err == nil {
		p.claims, p.run.LastOK = list, time.Now()
	}
}

// current is what it said, unless that is too long ago.
func (p *pods) current() []model.PodClaim {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.run.LastOK) < kubeletOld {
		return p.claims
	}
	return nil
}

// source is how asking did; false where there is no kubelet.
func (p *pods) source() (stream.Source, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run, p.found
}
