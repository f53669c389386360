package server

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/past/kube"
)

const (
	conditionEvery = 5 * time.Minute // a heartbeat, as the kubelet's own
	conditionRetry = 15 * time.Second
	conditionWait  = 10 * time.Second
)

// setNodeCondition sets the condition of the node that we run on (--node-condition), when it
// changes and as a heartbeat, until ctx is done.
func (s *Server) setNodeCondition(ctx context.Context, name string) error {
	node, err := kube.InCluster(name)
	if err != nil {
		s.log.Warn("cannot set node condition", "node", name, "err", err)
		return nil
	}
	var last kube.Condition
	var told time.Time
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for failed := (time.Time{}); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		snap := s.feed.Latest()
		if snap == nil || time.Since(failed) < conditionRetry {
			continue
		}
		c := kube.Of(snap)
		if c.Status == last.Status && c.Reason == last.Reason && time.Since(told) < conditionEvery {
			continue
		}
		c.LastHeartbeatTime = time.Now().UTC().Truncate(time.Second)
		if c.LastTransitionTime = last.LastTransitionTime; c.Status != last.Status {
			c.LastTransitionTime = c.LastHeartbeatTime
		}
		if err := setCondition(ctx, node, c); err != nil {
			s.log.Warn("cannot set node condition", "node", name, "err", err)
			failed = time.Now()
			continue
		}
		last, told = c, time.Now()
	}
}

func setCondition(ctx context.Context, node *kube.Node, c kube.Condition) error {
	ctx, cancel := context.WithTimeout(ctx, conditionWait)
	defer cancel()
	return node.Set(ctx, c)
}
