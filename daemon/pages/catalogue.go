package pages

import (
	"context"
	"path"
	"time"

	"lacuna/ops"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/stac"
)

// catalogue lists the folder of products.
type catalogue struct {
	reading
	store disk.Store
}

// Products implements ops.Catalogue.
func (c catalogue) Products(ctx context.Context, dataset string, from, to time.Time, limit int) (list []ops.Listed, more bool, err error) {
	if err := c.known(dataset); err != nil {
		return nil, false, err
	}
	err = c.store.Newest(dataset, from, to, func(folder string, e publish.Entry) bool {
		// Products of one time are not parted, for a page begins with a time.
		if n := len(list); n >= limit && !e.Time.Equal(list[n-1].Time) || ctx.Err() != nil {
			more = n >= limit
			return false
		}
		list = append(list, listed(folder, e))
		return true
	})
	if err == nil {
		err = ctx.Err()
	}
	return list, more, err
}

func listed(folder string, e publish.Entry) ops.Listed {
	href := func(file string) string {
		if file == "" {
			return ""
		}
		return ops.ProductURL(path.Join(folder, file))
	}
	l := ops.Listed{
		Time: e.Time, File: href(e.File), Item: href(stac.ItemName(e.File)), QuickLook: href(e.QuickLook), Granule: e.Granule,
		Revision: e.Revision, Mode: e.Mode, Model: e.Model, Bytes: e.Size, SHA256: e.SHA256,
	}
	if e.Members != nil {
		l.Members = href(e.Members.File)
	}
	return l
}
