/** Follows the transcript of a session, and reconnects until the screen is left. */
import { followTranscript, type Transcript, TranscriptRefused } from '../../transcript.ts'
import type { Page } from '../page.ts'

export interface FollowParts {
  readonly page: Pick<Page, 'account' | 'refused'>
  readonly session_id: string
  readonly transcript: Transcript
  /** Aborts when the screen is left. */
  readonly signal: AbortSignal
  /** Called after the transcript has changed. */
  onChange(): void
  /** Called with the state of the connection, and with '' when frames arrive. */
  onState(text: string): void
}

/** Starts following. Returns a function that ends the pause before a reconnection. */
export function startFollowing(parts: FollowParts): () => void {
  let wake = (): void => {}
  const pause = (ms: number): Promise<void> =>
    new Promise((done) => {
      const timer = setTimeout(done, ms)
      wake = () => {
        clearTimeout(timer)
        done()
      }
    })
  void follow(parts, pause)
  return () => wake()
}

async function follow(
  { page, session_id, transcript, signal, onChange, onState }: FollowParts,
  pause: (ms: number) => Promise<void>,
): Promise<void> {
  try {
    for await (const _ of followTranscript({
      url: location.origin,
      ...page.account,
      session_id,
      transcript,
      forever: true,
      signal,
      pause,
      onReconnect: (reason) => {
        if (!reason.startsWith('the server ended the stream'))
          onState(`Not connected (${reason}). Reconnecting…`)
      },
    })) {
      onState('')
      onChange()
    }
  } catch (error) {
    if (error instanceof TranscriptRefused && error.status === 401) return page.refused()
    onState(
      error instanceof TranscriptRefused && error.status === 404
        ? 'This session does not exist in this project.'
        : `The session cannot be followed: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}
