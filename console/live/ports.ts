/** Provides a hub with the clock, network and randomness of the browser. */
import type { LivePorts } from './messages.ts'

export const browserPorts: LivePorts = {
  // `fetch` must be called as a function of the global object.
  fetch: (input, init) => fetch(input, { credentials: 'same-origin', ...init }),
  later: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
}
