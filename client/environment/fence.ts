/**
 * Refuses jobs of an earlier lease of the environment.
 *
 * Invariants:
 * F1. A job with a lower fence number than an earlier job is refused before it starts.
 * F2. The highest fence number is preserved across restarts of the worker if it can be written to
 *     its file.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import type { Action } from '../worker/options.ts'
import { ActionFault } from './fault.ts'

export class Fence {
  readonly #file: string | undefined
  readonly #log: (line: string) => void
  #highest: number
  #written = true

  /** @param file stores the highest fence number; if absent, it is kept in memory only. */
  constructor(file: string | undefined, log: (line: string) => void) {
    this.#file = file
    this.#log = log
    this.#highest = file === undefined ? 0 : stored(file)
  }
  /**
   * Accepts a job. A job without a fence number uses no lease and is always accepted.
   * @throws ActionFault `environment_fenced` if the job belongs to an earlier lease.
   */
  admit(job: ClaimedJob): void {
    const number = fenceOf(job)
    if (number === undefined || number === this.#highest) return
    if (number < this.#highest)
      throw new ActionFault(
        'environment_fenced',
        `the lease ${number} of the environment has ended; the current one is ${this.#highest}`,
      )
    this.#highest = number
    this.#store()
  }
  /** Wraps an action to refuse jobs of an earlier lease. */
  guard(action: Action): Action {
    return (parameters, context) => {
      this.admit(context.job)
      return action(parameters, context)
    }
  }
  #store(): void {
    if (this.#file === undefined) return
    try {
      writeFileSync(`${this.#file}.new`, `${this.#highest}\n`)
      renameSync(`${this.#file}.new`, this.#file)
    } catch (error) {
      if (this.#written) this.#log(`the fence is kept in memory: ${(error as Error).message}`)
      this.#written = false
    }
  }
}
function stored(file: string): number {
  try {
    const number = Number(readFileSync(file, 'utf8').trim())
    return Number.isSafeInteger(number) && number > 0 ? number : 0
  } catch {
    return 0
  }
}
/**
 * Returns the fence number of the lease under which the job uses the environment; undefined if the
 * job has none.
 */
function fenceOf({ spec }: ClaimedJob): number | undefined {
  const environment = spec['environment']
  const fence =
    typeof environment === 'object' && environment !== null && 'fence' in environment
      ? environment.fence
      : undefined
  return typeof fence === 'number' ? fence : undefined
}
