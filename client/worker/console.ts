/**
 * Captures what handlers write with `console`. The process has only one console, so the
 * asynchronous context of a call determines the job to which a line belongs. All lines are still
 * written to the console's own streams.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { format } from 'node:util'
import type { WriteLine } from './logs.ts'

/** The methods that are captured, and the levels of their lines. */
const levels = { debug: 'debug', log: 'info', info: 'info', warn: 'warn', error: 'error' } as const
type Method = keyof typeof levels
const methods = Object.keys(levels) as readonly Method[]

export interface ConsoleCapture {
  /**
   * Calls a function. Lines that the function writes, even asynchronously, are passed to `write`.
   */
  run<T>(write: WriteLine, call: () => T): T
  /** Restores the original methods, except those that other code has replaced in the meantime. */
  stop(): void
}

/** Replaces the methods of this process's console until `stop` is called. */
export function captureConsole(): ConsoleCapture {
  const writers = new AsyncLocalStorage<WriteLine>()
  const captured = methods.map((name) => {
    const original = console[name]
    const replaced = (...values: unknown[]): void => {
      original.apply(console, values)
      writers.getStore()?.(levels[name], format(...values))
    }
    console[name] = replaced
    return { name, original, replaced }
  })
  return {
    run: (write, call) => writers.run(write, call),
    stop: () => {
      for (const { name, original, replaced } of captured)
        if (console[name] === replaced) console[name] = original
    },
  }
}
