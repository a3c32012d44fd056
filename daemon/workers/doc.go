// Package workers spreads fill jobs over machines by Kafka. Nothing here schedules,
// elects or replicates: the brokers do, by their consumer groups.
//
//	<prefix>.jobs           jobs of the live lane      group <prefix>.workers
//	<prefix>.jobs.backfill  all others, taken when no live one waits
//	<prefix>.jobs.train     trainings                  group <prefix>.trainers
//	<prefix>.results        finished jobs, and what every worker is at
//	<prefix>.dead           jobs that were given up, with the reason
//	<prefix>.turn           one partition, group <prefix>.coordinator
//
// A Worker has partitions of the first two topics. It does one job at a time, and
// commits its offset when the result is on the brokers: a worker that is killed in
// between leaves the job to the next. The client sends heartbeats beside the work, so
// that a job may take longer than the session timeout. A job that ends no worker well
// is counted in the shared folder before each attempt, and after Config.Tries it goes
// to the dead letters.
//
// A Fleet is the coordinator's side: it sends jobs, hands their results on, and keeps
// what the workers report of themselves. The shared folder has every result before it
// is announced; Fleet looks there for those whose announcement was lost.
//
// Turn makes one of several daemons the coordinator: the member of a group of one
// partition. It ends the turn of a daemon that has had no answer to its heartbeats for
// the session timeout, before the brokers give the partition to another.
//
// Package workers does not know the ledger or what a job does: a worker is given a
// function for that.
package workers
