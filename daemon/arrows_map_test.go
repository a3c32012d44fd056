package daemon

// house is the map of the packages: each row may import the rows that it names,
// all of them above it, and its tests those of the second list too. A folder
// below a row belongs to it. A name without a slash is a neighbour in the same
// folder, else a folder at the top; a/{b c} is a/b and a/c. The leaves in internal
// are everybody's.
var house = []struct{ folder, imports, tests string }{
	// Leaves that everybody may import.
	{"internal", "", ""},

	// The stages: none knows another.
	{"ledger", "", ""},
	{"fetch", "", "ledger"},
	{"publish", "", ""},
	{"modelstore", "", ""},
	{"ops", "", ""},

	// The pipeline. What everything is made of:
	{"pipeline", "", ""},
	{"pipeline/realdata", "", ""},
	{"pipeline/field", "", ""},
	{"pipeline/seamask", "field", "realdata"},
	{"pipeline/noise", "", ""},
	{"pipeline/trusted", "", ""},
	{"pipeline/ingest", "field", "realdata"},
	{"pipeline/simulate", "field seamask", ""},
	{"pipeline/skill", "field", ""},

	// What fills:
	{"pipeline/classical", "field", "realdata"},
	{"pipeline/engine", "trusted", ""},
	{"pipeline/nn", "noise engine", ""},
	{"pipeline/samples", "field noise classical", ""},
	{"pipeline/impute", "field noise classical engine nn samples", ""},
	{"pipeline/infer", "field noise simulate skill classical engine nn samples impute", ""},
	{"pipeline/parts", "field samples impute", ""},

	// What draws masks and splits observations by them:
	{"pipeline/partition", "field noise samples", ""},
	{"pipeline/prior", "field noise engine nn samples partition", "skill"},
	{"pipeline/masks", "noise skill samples partition prior", "engine nn"},

	// What learns:
	{"pipeline/train", "engine nn", "noise"},
	{"pipeline/learn", "field noise nn samples impute partition prior masks train", "realdata skill classical engine"},
	{"pipeline/evaluate", "field noise skill classical samples impute", ""},
	{"pipeline/version", "field noise skill classical nn samples impute parts partition prior masks train learn evaluate", "simulate engine"},

	// What measures:
	{"pipeline/lab", "field noise skill classical engine nn samples impute infer parts partition prior masks train learn evaluate version", "simulate"},

	// The rooms of the daemon. Small ones:
	{"daemon/state", "", ""},
	{"daemon/version", "", ""},
	{"daemon/supervise", "", ""},
	{"daemon/slots", "pipeline/{field ingest}", ""},
	{"daemon/feed", "publish pipeline/simulate", ""},
	{"daemon/gridpin", "pipeline/field", ""},
	{"daemon/quarantine", "ledger fetch state", ""},

	// The training service:
	{"daemon/retrain", "publish modelstore state pipeline/{field trusted ingest skill engine nn samples partition version}", "pipeline/{simulate classical impute infer evaluate}"},

	// A granule's way:
	{"daemon/fill", "publish modelstore version pipeline/{field seamask ingest nn samples impute infer parts}", "pipeline/engine"},
	{"daemon/work", "ledger fetch publish ops state supervise slots gridpin quarantine fill pipeline/{field ingest skill samples infer parts}", "feed pipeline/simulate"},
	{"daemon/books", "ledger publish state quarantine pipeline/{field ingest}", ""},
	{"daemon/outbox", "ledger fetch publish supervise books", ""},
	{"daemon/intake", "ledger fetch state version quarantine pipeline/ingest", ""},

	// The operator's side:
	{"daemon/operate", "ledger fetch publish modelstore ops state gridpin quarantine retrain fill books outbox intake pipeline/{field engine infer}", ""},
	{"daemon/pages", "ledger fetch publish modelstore ops state version retrain fill intake operate pipeline/{ingest skill}", ""},
	{"daemon/onboard", "retrain fill intake pipeline/{field ingest infer}", ""},

	// Configuration, wiring and life:
	{"daemon", "ledger fetch publish modelstore ops pipeline/{trusted ingest skill engine infer} daemon/{state supervise slots feed gridpin retrain fill work books outbox intake operate pages}", "pipeline/{realdata field simulate} daemon/{version quarantine onboard}"},

	// The commands, and the program:
	{"daemon/cli", "version pipeline/ingest", ""},
	{"daemon/cli/clitest", "modelstore pipeline/{ingest simulate nn impute infer} daemon/feed", ""},
	{"daemon/cli/input", "modelstore pipeline/{field ingest engine samples infer} daemon/{fill onboard cli}", "clitest pipeline/simulate"},
	{"daemon/cli/service", "fetch ops daemon daemon/{operate pages cli}", "daemon/books"},
	{"daemon/cli/files", "fetch publish modelstore input pipeline/{field ingest simulate engine samples infer} daemon/{feed retrain fill intake onboard cli}", "clitest"},
	{"daemon/cli/models", "modelstore input pipeline/{engine nn infer version} daemon/{version feed retrain fill onboard cli}", "clitest"},
	{"daemon/cli/measure", "modelstore input pipeline/{field noise engine nn samples impute infer parts partition prior masks evaluate lab} daemon/{retrain onboard cli}", "clitest pipeline/simulate"},
	{"daemon/cmd/lacuna", "daemon daemon/cli daemon/cli/{service files models measure}", "publish modelstore pipeline/{realdata field ingest simulate engine samples} daemon/{retrain fill}"},

	// How it is run.
	{"systemd", "", ""},
}

// training are the rows that serving does without.
var training = []string{
	"pipeline/partition", "pipeline/prior", "pipeline/masks", "pipeline/train", "pipeline/learn", "pipeline/version", "pipeline/lab", "daemon/retrain",
}

// serving are the rows that make a product of a granule.
var serving = []string{"pipeline/infer", "daemon/fill", "daemon/work", "daemon/outbox", "daemon/intake"}
