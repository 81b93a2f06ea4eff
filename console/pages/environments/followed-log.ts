/**
 * Follows a log of an environment's worker: its newest lines, and then the appended lines. After an
 * error, the log is requested again when the environment has changed.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { plainText } from '../../../client/plain.ts'
import type { LogName } from '../../../protocol/environments/schema.ts'
import { onChange } from '../../api/changes.ts'
import { errorOfFault, live } from '../../api/live.ts'
import type { Loaded } from '../../api/query.ts'
import type { LiveFrame } from '../../live/live.ts'

/** The text of a log. `truncated`: older lines are left out. */
export interface LogText {
  readonly content: string
  readonly truncated: boolean
}
/** The data of a `log.text` frame. */
interface Added {
  readonly text: string
  readonly reset?: true
  readonly truncated?: boolean
}

/** Maximum number of characters of a log that are kept. */
const MAX_CHARACTERS = 2_000_000

/**
 * Returns a log to which the text of a frame was appended, or the text alone if the frame resets
 * the log. Control sequences, such as those for colours, are removed from the text. If the log
 * becomes longer than `MAX_CHARACTERS`, the oldest lines are dropped.
 */
export function withFrame(
  { content, truncated }: LogText,
  { text, reset, truncated: cut = false }: Added,
): LogText {
  const added = plainText(text)
  if (reset) return { content: added, truncated: cut }
  const all = content + added
  if (all.length <= MAX_CHARACTERS) return { content: all, truncated }
  const from = all.length - MAX_CHARACTERS
  return { content: all.slice(all.indexOf('\n', from) + 1), truncated: true }
}

export class FollowedLog {
  readonly #state = signal<Loaded<LogText>>({ loading: true })
  readonly #project: string
  readonly #target: string
  readonly #filter: { readonly log_name: LogName; readonly tail: number }
  #stop: (() => void) | undefined

  constructor(project: string, environment_id: string, log_name: LogName, tail: number) {
    this.#project = project
    this.#target = environment_id
    this.#filter = { log_name, tail }
  }
  get state(): ReadonlySignal<Loaded<LogText>> {
    return this.#state
  }

  /** Follows the log until the returned function is called. After that, `state` keeps the text. */
  follow(): () => void {
    const stopChanges = onChange({ project: this.#project }, (kind, id) => {
      const concerns = kind === 'environment' && (id === undefined || id === this.#target)
      if (concerns && this.#state.peek().error) this.#open()
    })
    this.#open()
    return () => {
      stopChanges()
      this.#stop?.()
      this.#stop = undefined
    }
  }
  #open(): void {
    this.#stop?.()
    this.#stop = live().follow(
      {
        project: this.#project,
        topic: 'environment_log',
        target: this.#target,
        filter: this.#filter,
      },
      {
        frame: ({ data }: LiveFrame) => {
          const { data: before = { content: '', truncated: false } } = this.#state.peek()
          this.#state.value = { data: withFrame(before, data as Added), loading: false }
        },
        state: ({ state, fault }) => {
          if (state !== 'refused' || !fault) return
          const { data } = this.#state.peek()
          const error = errorOfFault(fault)
          this.#state.value = { ...(data && { data }), error, loading: false }
        },
      },
    )
  }
}
