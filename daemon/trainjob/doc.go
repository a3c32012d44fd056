// Package trainjob has trainings done on other machines, as jobs like fills.
//
//	coordinator                       shared folder                  worker with a GPU
//	Scheduler ─▶ Remote.Train ──▶  granules, versions, calendar ──▶ Runner.Run ─▶ lacuna train
//	    ▲                          checkpoints, lease           ◀──▶     │
//	    └─ promoted or refused ◀─  the version, the gate's word  ◀───────┘
//
// Remote makes a message of the arguments of lacuna train: files by their hashes, the
// version to begin with, the champion and the calendar of the dataset. Runner puts them
// into a store of its own, runs the same lacuna train as the daemon would, and answers
// with the version in one file. What its network was asked at the gate it was asked
// there; Remote takes the version into the store, makes sure that it was judged against
// the present champion, and promotes or refuses it by the policy.
//
// A Runner keeps its checkpoints in the shared folder, and a lease beside them that
// says that it is there: whoever gets the job after it was killed goes on from the last
// of them, where its engine is the same, and whoever gets it by a rebalance meanwhile
// leaves it alone.
//
// Package trainjob does not know the ledger, Kafka, or when a training is due.
package trainjob
