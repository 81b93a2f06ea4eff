/**
 * Loads parts of the program on demand. If an upgrade of the service has removed the file of a part
 * that an open page needs, the page reloads, at most once for each part.
 *
 * Invariants:
 * P1. The page reloads only while the service answers. Otherwise the person would lose the page.
 * P2. A part that is still missing after the reload is reported. The page does not reload again.
 */
import { shellText as text } from '../shell/text.ts'

/**
 * The error for a part that could not be loaded, although the page was reloaded. Its message is
 * shown to the person.
 */
export class MissingPart extends Error {
  constructor() {
    super(text.updated)
    this.name = 'MissingPart'
  }
}

/** Prefix of the session storage keys of parts for which this tab was reloaded. */
const RELOADED = 'console.reloaded.'
/** Milliseconds between two attempts to reach a service that does not answer. */
const PAUSE_MS = 1000

/** Waits until the service answers with the document of the page. */
async function untilServed(): Promise<void> {
  const served = (): Promise<boolean> =>
    fetch(location.pathname, { cache: 'no-store' }).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await served())) await new Promise((again) => setTimeout(again, PAUSE_MS))
}

/**
 * Loads a part.
 * @param name identifies the part, independently of the version.
 * @param isWanted returns whether the person still waits for the part; called before the reload.
 * @returns the module. The promise stays pending if the page reloads or the part is no longer
 * wanted.
 * @throws MissingPart if a reload did not help.
 */
export async function loadPart<T>(
  name: string,
  load: () => Promise<T>,
  isWanted: () => boolean = () => true,
): Promise<T> {
  try {
    const part = await load()
    sessionStorage.removeItem(RELOADED + name)
    return part
  } catch (error) {
    console.error(error)
    await untilServed()
    if (isWanted()) {
      if (sessionStorage.getItem(RELOADED + name) !== null) throw new MissingPart()
      sessionStorage.setItem(RELOADED + name, '1')
      location.reload()
    }
    return new Promise(() => {})
  }
}
