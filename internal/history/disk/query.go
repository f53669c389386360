package disk

import "github.com/prometheus/prometheus/storage"

// tiers joins the databases: each is asked for the time that it is best for.
func (s *Store) tiers(mint, maxt int64) (storage.Querier, error) {
	var list []storage.Querier
	add := func(db *database, from, to int64) error {
		if db == nil || from > to {
			return nil
		}
		q, err := db.db.Querier(from, to)
		if err == nil {
			list = append(list, q)
		}
		return err
	}
	begin := int64(1) << 62
	if s.fine != nil {
		begin = s.fine.oldest()
	}
	err := add(s.coarse, mint, min(maxt, begin-1))
	if err == nil {
		err = add(s.fine, max(mint, begin), maxt)
	}
	if err == nil {
		err = add(s.memory, mint, maxt)
	}
	if err != nil {
		for _, q := range list {
			_ = q.Close()
		}
		return nil, err
	}
	return storage.NewMergeQuerier(list, nil, storage.ChainedSeriesMerge), nil
}
