// The variable of the environment that confines a process; see Mark.
#define LACUNA_SANDBOX_MARK "LACUNA_DECODING_CHILD"

int lacuna_landlock_version(void);
