// Preloaded into a node server: its timers of 60 s end after 4 s. What gives up after a minute does so while a test waits.
const real = globalThis.setTimeout;
globalThis.setTimeout = (work, delay, ...more) => real(work, delay === 60000 ? 4000 : delay, ...more);
