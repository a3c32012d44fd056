package books

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/disk"
)

// Identify returns the owner that the state of a ledger marks its places with. A
// new ledger gets a random name first.
func Identify(ctx context.Context, book *ledger.Ledger, now time.Time) (publish.Owner, error) {
	i, err := book.Identity(ctx, ledger.Identity{State: rand.Text(), Epoch: 1, Since: now.UTC().Truncate(time.Second)})
	return OwnerOf(i), err
}

// OwnerOf returns an identity as the owner of places.
func OwnerOf(i ledger.Identity) publish.Owner {
	return publish.Owner{State: i.State, Epoch: i.Epoch, Since: i.Since.UTC()}
}

// own makes sure, before anything is read or written there, that the folder of
// products is this state's and that no other daemon works on it. The lock ends
// when book is closed. A folder that cannot be locked or written to now, or is away, does
// not prevent the start: it is locked before it is used, and its dispatcher tries again.
func (k Keeper) own(ctx context.Context, book *ledger.Ledger) error {
	me, err := Identify(ctx, book, k.Now())
	if err != nil {
		return err
	}
	if err := RecallMark(k.State, k.Store); err != nil {
		k.Log.Warn("it is not known which folders were marked", "err", err)
	}
	unlock, err := k.Store.Lock()
	switch {
	case errors.Is(err, disk.ErrLocked):
		return err
	case err != nil:
		k.Log.Warn("folder of products cannot be locked yet", "err", err)
	}
	if unlock != nil { // also of one that is locked later
		book.AtClose(unlock)
	}
	owner, err := k.Store.Owner(ctx)
	if err == nil {
		err = owner.Admits(me)
	}
	switch {
	case errors.Is(err, publish.ErrForeign), errors.Is(err, publish.ErrMarker), errors.Is(err, disk.ErrLocked):
		return fmt.Errorf("products_dir %s: %w", k.Store.Root, err)
	case err != nil:
		k.Log.Warn("folder of products does not say whose it is", "err", err)
		return nil
	case owner.State != me.State || owner.Epoch != me.Epoch:
		if err := k.Store.Claim(ctx, me); err != nil {
			k.Log.Warn("folder of products cannot be marked as this state's", "err", err)
			return nil
		}
		k.Log.Info("folder of products marked as this state's", "products_dir", k.Store.Root, "state", me.State, "epoch", me.Epoch)
	}
	if err := KeepMark(k.State, k.Store); err != nil {
		k.Log.Warn("it is not remembered that the folder of products was marked", "err", err)
	}
	return nil
}
