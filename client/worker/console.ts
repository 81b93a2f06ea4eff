/**
 * Captures what handlers write with `console`. The console of the process is one object, so the
 * asynchronous context of a call decides to which job a line belongs. The console keeps writing to
 * its streams.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { format } from 'node:util'
import type { WriteLine } from './logs.ts'

/** The methods that are captured, and the levels of their lines. */
const levels = { debug: 'debug', log: 'info', info: 'info', warn: 'warn', error: 'error' } as const
type Method = keyof typeof levels
const methods = Object.keys(levels) as readonly Method[]

export interface ConsoleCapture {
  /** Calls a function. The lines that it causes are passed to `write`, also if it is asynchronous. */
  run<T>(write: WriteLine, call: () => T): T
  /** Restores the console. */
  stop(): void
}

/** Begins to capture the console of this process. */
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
      // Another program may have replaced the methods meanwhile.
      for (const { name, original, replaced } of captured)
        if (console[name] === replaced) console[name] = original
    },
  }
}
