/**
 * Reads the lines that workers printed for a run: the newest ones, older ones on demand, and new
 * ones as they are printed. Lines are applied together.
 */
import { signal } from '@preact/signals'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { RunLogLine, RunLogPage } from '../../../../../protocol/jobs/logs.ts'
import { ApiError, requestOf, send } from '../../../../api/client.ts'

/** The filters of lines. */
export interface LogFilter {
  readonly step_key?: string
  readonly level?: string
  readonly contains?: string
}
/** What is known of the lines. `older`: there are lines before the first. */
export interface LogState {
  readonly lines: readonly RunLogLine[]
  readonly older: boolean
  readonly loading: boolean
  readonly error?: ApiError
}

/** Number of lines that are loaded at a time, at most 200. */
const PAGE = 200
const RENDER_MS = 150
const PAUSE_MS = 2000

/** The lines of a run under one filter. */
export class LogLines {
  readonly state = signal<LogState>({ lines: [], older: false, loading: true })
  readonly #ids: { readonly project: string; readonly id: string }
  readonly #filter: LogFilter
  readonly #abort = new AbortController()
  #before: number | undefined

  constructor(project: string, id: string, filter: LogFilter) {
    this.#ids = { project, id }
    this.#filter = filter
  }

  /** Loads the newest lines, and then follows new ones until `stop` is called. */
  async start(): Promise<void> {
    await this.older()
    const { signal: ended } = this.#abort
    while (!ended.aborted && !this.state.peek().error) {
      await this.#follow().catch((error: unknown) => {
        if (!ended.aborted && !(error instanceof ApiError) && !(error instanceof TypeError))
          throw error
      })
      // The stream was interrupted, or the service was restarted.
      await new Promise((next) => setTimeout(next, PAUSE_MS))
    }
  }
  stop(): void {
    this.#abort.abort()
  }

  /** Loads lines before the first one. */
  async older(): Promise<void> {
    this.state.value = { ...this.state.peek(), loading: true }
    let lines: RunLogLine[] = []
    try {
      let more = true
      // Pages can be short, because the service stops reading after a while.
      while (more && lines.length < PAGE) {
        const page = (await this.#read({
          order: 'desc',
          limit: PAGE,
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

  async #follow(): Promise<void> {
    const { path } = requestOf('run.logs', {
      ...this.#ids,
      ...this.#filter,
      after: this.state.peek().lines.at(-1)?.sequence ?? 0,
    })
    const { signal: ended } = this.#abort
    const { body } = await send('GET', path, undefined, {
      signal: ended,
      accept: 'text/event-stream',
    })
    if (!body) return
    let waiting: RunLogLine[] = []
    let timer: ReturnType<typeof setTimeout> | undefined
    const render = (): void => {
      timer = undefined
      const state = this.state.peek()
      this.state.value = { ...state, lines: [...state.lines, ...waiting] }
      waiting = []
    }
    const reader = body
      .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
      .pipeThrough(new EventSourceParserStream())
      .getReader()
    try {
      for (;;) {
        const { value, done } = await reader.read()
        if (done) return
        if (value.event !== 'log.line') continue
        waiting.push(JSON.parse(value.data) as RunLogLine)
        timer ??= setTimeout(render, RENDER_MS)
      }
    } finally {
      clearTimeout(timer)
      if (waiting.length > 0) render()
    }
  }
}
