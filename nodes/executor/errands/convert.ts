/**
 * Extracts the text of a file as Markdown, and stores the text in a second object. A repeat
 * overwrites the same object. If the file is deleted during the conversion, no text remains: the
 * deletion erases a text that is already stored, and the executor erases one that it stores later.
 */
import type { World } from '../../../gateway/ports.ts'
import type { ConversionResult } from '../../../protocol/artifacts/commands.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { textName } from '../../../protocol/sessions/attachments.ts'
import type { Converter } from '../documents/converter.ts'
import type { Runs } from './errands.ts'

const unavailable = refuse('artifact_storage_unavailable')

/** Creates the function that converts files. */
export const convertFile =
  (converter: Converter): Runs<'convert'> =>
  async (
    { world },
    project,
    { artifact_id, blob },
    signal,
  ): Promise<ConversionResult | Refusal> => {
    const { files, log } = world
    if (!files) return unavailable
    const stored = async <T>(action: () => Promise<T>): Promise<T | Refusal> => {
      try {
        return await action()
      } catch (error) {
        log.warn(
          { event: 'conversion_storage_failed', err: error, artifact_id },
          'conversion could not access the store of files',
        )
        return unavailable
      }
    }
    let lost: Refusal | undefined
    const outcome = await converter.convert(async () => {
      log.info({ event: 'conversion_started', artifact_id }, 'conversion started')
      const bytes = await stored(() => files.get(blob))
      if (!isRefusal(bytes)) return bytes
      lost = bytes
      return undefined
    }, signal)
    if (lost) return lost
    if (!outcome) return { state: 'failed', error: 'The file was deleted.' }
    if ('error' in outcome) return { state: 'failed', error: outcome.error }
    const text = textName(blob)
    const put = await stored(() => files.put(text, Buffer.from(outcome.markdown)))
    if (isRefusal(put)) return put
    const exists = await isKept(world, project, artifact_id)
    if (isRefusal(exists)) return exists
    if (exists) return { state: 'ready' }
    const deleted = await stored(() => files.delete(text))
    return isRefusal(deleted) ? deleted : { state: 'failed', error: 'The file was deleted.' }
  }

async function isKept(
  world: Pick<World, 'ask'>,
  project: string,
  artifact_id: string,
): Promise<boolean | Refusal> {
  const kept = await world.ask({ project, kind: 'artifact', id: artifact_id }, 'content', {})
  return kept && isRefusal(kept) ? kept : kept?.state === 'ready'
}
