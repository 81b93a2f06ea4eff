/** What the screens of the page share. */
import type { Session } from '../../protocol/sessions/schema.ts'
import { type Account, Refused, type Service } from './service.ts'

/** The parts of the surrounding page that a screen uses. */
export interface Page {
  readonly account: Account
  readonly service: Service
  /** Announces a message to screen readers, in place of the previous message. */
  announce(text: string): void
  /** Sets the document title. */
  showTitle(title: string): void
  /** Called when the service rejects the key. */
  refused(): void
}
/** One screen of the page. `leave` is called before another screen is shown. */
export interface Screen {
  readonly element: HTMLElement
  readonly leave: () => void
}

/**
 * Calls the service.
 * @returns the reason for a rejection; undefined if the call succeeds.
 */
export async function attempt(
  page: Pick<Page, 'refused'>,
  act: () => Promise<unknown>,
): Promise<string | undefined> {
  try {
    await act()
    return undefined
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    if (error.status === 401) page.refused()
    return error.message
  }
}

/** Returns the displayed name of a session: its title, or its key. */
export const sessionName = ({ title, session_key }: Session): string => title || session_key
