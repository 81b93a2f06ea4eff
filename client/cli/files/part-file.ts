/** Helps commands to remove incomplete files when the user interrupts them. */
import { rmSync } from 'node:fs'
import { Mistake } from '../mistake.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Deletes a file if a signal ends the process.
 * @returns a function that keeps the file from now on.
 */
export function deleteOnSignal(file: string): () => void {
  const keep = () => {
    for (const signal of SIGNALS) process.off(signal, end)
  }
  const end = (signal: NodeJS.Signals) => {
    keep()
    rmSync(file, { force: true })
    process.kill(process.pid, signal)
  }
  for (const signal of SIGNALS) process.on(signal, end)
  return keep
}

/** Defers a signal that would end the process. A second signal ends it at once. */
export class DeferredSignal {
  #signal: NodeJS.Signals | undefined
  readonly #receive = (signal: NodeJS.Signals) => {
    this.#signal = signal
    this.#stop()
  }
  constructor() {
    for (const signal of SIGNALS) process.on(signal, this.#receive)
  }
  /** @throws Mistake if a signal has arrived. */
  check(): void {
    if (this.#signal) throw new Mistake(`The command was interrupted by ${this.#signal}.`)
  }
  /** Ends the process if a signal has arrived. */
  end(): void {
    this.#stop()
    if (this.#signal) process.kill(process.pid, this.#signal)
  }
  #stop(): void {
    for (const signal of SIGNALS) process.off(signal, this.#receive)
  }
}
