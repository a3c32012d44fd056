// Package fleet has tests only: whole daemons, coordinators and workers, in processes of
// their own, on a broker. They are killed, stopped and cut off, and make the products
// that a daemon by itself makes; see docs/scaling.md.
package fleet
