/** The image of the containers. */
import { ProviderFault } from '../provider.ts'
import type { Engine } from './engine.ts'

/** Milliseconds without progress after which the download of an image fails. */
const PULL_SILENCE_MS = 180_000
/** Maximum number of characters of the engine's message that a fault contains. */
const MAX_MESSAGE_LENGTH = 500

/**
 * Downloads an image if the engine does not have it.
 * @throws ProviderFault when the image cannot be downloaded.
 */
export async function downloadMissingImage(
  engine: Engine,
  image: string,
  signal: AbortSignal,
): Promise<void> {
  const path = `/images/${encodeURI(image)}/json`
  const { status } = await engine.call('GET', path, { accepts: [404], signal })
  if (status !== 404) return
  let output = ''
  await engine.stream(
    'POST',
    '/images/create',
    (part) => {
      output = (output + part.toString()).slice(-4096)
    },
    { query: { fromImage: image }, signal, silence_ms: PULL_SILENCE_MS },
  )
  const error = /"error":\s*("(?:[^"\\]|\\.)*")/.exec(output)?.[1]
  if (error === undefined) return
  const message = (JSON.parse(error) as string).slice(0, MAX_MESSAGE_LENGTH)
  throw new ProviderFault(`The image ${image} cannot be downloaded: ${message}`)
}
