/**
 * Follows the transcript of a session, folded by `client/transcript/fold.ts`. Changes are shown in
 * batches, at most one every `PAUSE_MS`.
 *
 * Invariant: a transcript contains only what the service has sent.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { Transcript, type TranscriptFrame } from '../../../../client/transcript/fold.ts'
import { call } from '../../../api/client.ts'
import { live } from '../../../api/live.ts'
import type { LiveFrame, LiveStatus } from '../../../live/live.ts'

/** Milliseconds between two batches of frames. */
const PAUSE_MS = 40
/** Number of messages per request for earlier messages. */
const EARLIER_MESSAGES = 50

export class FollowedSession {
  readonly transcript = new Transcript()
  readonly #version = signal(0)
  readonly #status = signal<LiveStatus>({ state: 'connecting' })
  readonly #loaded = signal(false)
  readonly #project: string
  readonly #id: string
  #later: ReturnType<typeof setTimeout> | undefined

  constructor(project: string, id: string) {
    this.#project = project
    this.#id = id
  }
  /** Increases whenever the transcript changes. */
  get version(): ReadonlySignal<number> {
    return this.#version
  }
  get status(): ReadonlySignal<LiveStatus> {
    return this.#status
  }
  /** Whether the newest part of the transcript has arrived. */
  get loaded(): ReadonlySignal<boolean> {
    return this.#loaded
  }

  /** Follows the session until the returned function is called. */
  follow(): () => void {
    const stop = live().follow(
      { project: this.#project, topic: 'session', target: this.#id },
      {
        frame: (frame) => this.#apply(frame),
        state: (status) => {
          if (status.state === 'connecting' || status.state === 'waiting') this.transcript.begin()
          this.#status.value = status
        },
      },
    )
    return () => {
      stop()
      clearTimeout(this.#later)
      this.#later = undefined
    }
  }
  /** Applies a record from a reply, unless the stream has already delivered the record. */
  add(event_type: 'message.upsert' | 'turn.upsert', record: { readonly id: string }): void {
    const { rows, turns } = this.transcript
    if ((event_type === 'message.upsert' ? rows : turns).has(record.id)) return
    this.transcript.apply({ ...record, event_type })
    this.#changed()
  }
  /** Applies a new state of a question. */
  answered(interaction: { readonly id: string }): void {
    this.transcript.apply({ ...interaction, event_type: 'interaction.upsert' })
    this.#changed()
  }
  /** The lowest sequence of the messages that are loaded. */
  get first(): number | undefined {
    return (
      this.transcript.messages().find(({ sequence }) => sequence !== null)?.sequence ?? undefined
    )
  }
  /**
   * Loads earlier messages with their turns.
   * @throws ApiError if a request fails.
   */
  async earlier(): Promise<void> {
    const { first: before_sequence } = this
    if (before_sequence === undefined || before_sequence <= 1) return
    const of = { project: this.#project, session_id: this.#id }
    const { items } = await call('session.messages', {
      ...of,
      before_sequence,
      order: 'desc',
      limit: EARLIER_MESSAGES,
    })
    const missing = new Set(
      items.flatMap(({ turn_id }) =>
        turn_id !== undefined && !this.transcript.turns.has(turn_id) ? [turn_id] : [],
      ),
    )
    const turns =
      missing.size === 0
        ? []
        : (await call('session.turns', { ...of, ids: [...missing], limit: 100 })).items
    for (const turn of turns) this.add('turn.upsert', turn)
    for (const row of items)
      this.transcript.apply({
        status: 'final',
        turn_index: null,
        ...row,
        event_type: 'message.upsert',
      })
    this.#changed()
  }

  #apply({ event, cursor, data }: LiveFrame): void {
    const frame = { ...(data as object), event_type: event } as TranscriptFrame
    this.transcript.apply(frame, cursor === undefined ? undefined : String(cursor))
    this.#changed()
  }
  #changed(): void {
    this.#later ??= setTimeout(() => {
      this.#later = undefined
      if (this.transcript.ready) this.#loaded.value = true
      this.#version.value++
    }, PAUSE_MS)
  }
}

/** Follows a session while a component is shown. */
export function useSession(project: string, id: string): FollowedSession {
  const followed = useMemo(() => new FollowedSession(project, id), [project, id])
  useEffect(() => followed.follow(), [followed])
  return followed
}
