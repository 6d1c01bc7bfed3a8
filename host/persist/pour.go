package persist

import "context"

// Pour calls f with the events of an ID, or with a tag if that is not "", or of all IDs, one after the other, if both are "".
// Before it waits for further ones ([Query.Live], not for all IDs) it calls idle, which may be nil. It ends with the error of
// f or idle, with the cause with which ctx ends, or when there is nothing more.
func (j *Journal) Pour(ctx context.Context, id, tag string, q Query, f func(*Event) error, idle func() error) error {
	if id == "" && tag == "" {
		for id, err := range j.IDs(ctx) {
			if err == nil {
				err = j.Pour(ctx, id, "", Query{From: q.From, To: q.To}, f, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for {
		changed := j.Changed()
		var p Page
		var err error
		if tag != "" {
			p, err = j.PageByTag(ctx, tag, q, chunkBytes)
		} else {
			p, err = j.PageByID(ctx, id, q, chunkBytes)
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		for i := 0; i < len(p.Events) && err == nil; i++ {
			err = f(&p.Events[i])
		}
		if err != nil {
			return err
		}
		switch q.From = p.Next; {
		case p.More:
			continue
		case !q.Live || q.To != 0 && q.From > q.To:
			return nil
		}
		if idle != nil {
			if err := idle(); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
