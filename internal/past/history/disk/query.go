package disk

import "github.com/prometheus/prometheus/storage"

// span is a stretch of time, both ends included, in ms.
type span struct{ From, To int64 }

// tiers joins the databases: each is asked for the time that it is best for.
func (s *Store) tiers(mint, maxt int64) (storage.Querier, error) {
	var list []storage.Querier
	var err error
	add := func(db *database, part span) {
		if db == nil || part.From > part.To || err != nil {
			return
		}
		var q storage.Querier
		if q, err = db.db.Querier(part.From, part.To); err == nil {
			list = append(list, q)
		}
	}
	all := []span{{mint, maxt}}
	if s.fine != nil {
		have := without(all, s.fine.missing())
		for _, part := range have {
			add(s.fine, part)
		}
		all = without(all, have)
	}
	if s.coarse != nil {
		for _, part := range without(all, s.coarse.holes) {
			add(s.coarse, part)
		}
	}
	add(s.memory, span{mint, maxt})
	if err != nil {
		for _, q := range list {
			_ = q.Close()
		}
		return nil, err
	}
	return storage.NewMergeQuerier(list, nil, storage.ChainedSeriesMerge), nil
}

// missing is the time for which a database has nothing, or nothing that can be
// read: before its first sample, and in its holes.
func (d *database) missing() []span {
	return append([]span{{-1 << 62, d.oldest() - 1}}, d.holes...)
}

// without is what is left of spans when others are taken out.
func without(spans, out []span) (left []span) {
	left = spans
	for _, o := range out {
		var next []span
		for _, s := range left {
			if before := (span{s.From, min(s.To, o.From-1)}); before.From <= before.To {
				next = append(next, before)
			}
			if after := (span{max(s.From, o.To+1), s.To}); after.From <= after.To {
				next = append(next, after)
			}
		}
		left = next
	}
	return left
}
