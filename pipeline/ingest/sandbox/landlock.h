// The variable of the environment that confines a process; see Mark.
#define LACUNA_SANDBOX_MARK "LACUNA_DECODING_CHILD"
// The variable that makes a process a template; see Template.
#define LACUNA_SANDBOX_TEMPLATE "LACUNA_DECODING_TEMPLATE"

int lacuna_landlock_version(void);
