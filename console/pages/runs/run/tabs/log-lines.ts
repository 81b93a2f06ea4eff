/**
 * Reads the lines that workers printed for a run: the newest ones, older ones on demand, and new
 * ones as they are printed. New lines are applied in batches.
 */
import { signal } from '@preact/signals'
import type { LogLevel, RunLogLine, RunLogPage } from '../../../../../protocol/jobs/logs.ts'
import { ApiError, requestOf, send } from '../../../../api/client.ts'
import { errorOfFault, live } from '../../../../api/live.ts'

/** The filters for log lines. */
export interface LogFilter {
  readonly step_key?: string
  readonly level?: LogLevel
  readonly contains?: string
}
/** The loaded lines. `older`: there are lines before the first. */
export interface LogState {
  readonly lines: readonly RunLogLine[]
  readonly older: boolean
  readonly loading: boolean
  readonly error?: ApiError
}

/** Minimum number of lines that a call of `older` loads, if there are that many. */
const PAGE_SIZE = 400
/** Maximum number of lines per request. */
const MAX_REQUEST_LINES = 200
/** Minimum time between two renderings. */
const RENDER_MS = 150

/** Loads and follows the lines of a run that match one filter. */
export class LogLines {
  readonly state = signal<LogState>({ lines: [], older: false, loading: true })
  readonly #ids: { readonly project: string; readonly id: string }
  readonly #filter: LogFilter
  readonly #abort = new AbortController()
  #before: number | undefined
  #stop = (): void => {}
  #timer: ReturnType<typeof setTimeout> | undefined
  #waiting: RunLogLine[] = []

  constructor(project: string, id: string, filter: LogFilter) {
    this.#ids = { project, id }
    this.#filter = filter
  }

  /** Loads the newest lines, and then follows new ones until `stop` is called. */
  async start(): Promise<void> {
    await this.older()
    if (!this.#abort.signal.aborted && !this.state.peek().error) this.#follow()
  }
  stop(): void {
    this.#abort.abort()
    this.#stop()
    clearTimeout(this.#timer)
  }

  /** Loads lines before the first one. */
  async older(): Promise<void> {
    this.state.value = { ...this.state.peek(), loading: true }
    let lines: RunLogLine[] = []
    try {
      let more = true
      // The service limits the duration of a read and may return fewer lines than requested, so
      // pages are loaded until there are enough lines.
      while (more && lines.length < PAGE_SIZE) {
        const page = (await this.#read({
          order: 'desc',
          limit: MAX_REQUEST_LINES,
          ...(this.#before !== undefined && { after: this.#before }),
        })) as RunLogPage
        this.#before = page.next_after
        lines = [...lines, ...page.items]
        more = page.has_more
      }
      const { lines: known } = this.state.peek()
      this.state.value = { lines: [...lines.reverse(), ...known], older: more, loading: false }
    } catch (error) {
      if (this.#abort.signal.aborted) return
      if (!(error instanceof ApiError)) throw error
      this.state.value = { ...this.state.peek(), loading: false, error }
    }
  }

  async #read(input: Readonly<Record<string, unknown>>): Promise<unknown> {
    const { path } = requestOf('run.logs', { ...this.#ids, ...this.#filter, ...input })
    return (await send('GET', path, undefined, { signal: this.#abort.signal })).json()
  }

  /** Follows the lines after the last loaded one. */
  #follow(): void {
    const after = this.state.peek().lines.at(-1)?.sequence ?? 0
    this.#stop = live().follow(
      {
        project: this.#ids.project,
        topic: 'logs',
        target: this.#ids.id,
        filter: this.#filter,
        after,
      },
      {
        frame: ({ event, data }) => {
          if (event !== 'log.line') return
          this.#waiting.push(data as RunLogLine)
          this.#timer ??= setTimeout(() => this.#render(), RENDER_MS)
        },
        state: ({ state, fault }) => {
          if (state !== 'refused' || !fault) return
          const error = errorOfFault(fault)
          this.state.value = { ...this.state.peek(), error }
        },
      },
    )
  }
  #render(): void {
    this.#timer = undefined
    const state = this.state.peek()
    this.state.value = { ...state, lines: [...state.lines, ...this.#waiting] }
    this.#waiting = []
  }
}
