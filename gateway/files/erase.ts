/** Deletes the objects of files. */
import { objectNames } from '../../protocol/sessions/attachments.ts'
import type { World } from '../ports.ts'

/**
 * Maximum time in milliseconds for which a request waits for a deletion. With the time limits of
 * the store itself, it stays below `BATON_DEADLINE`.
 */
const ERASE_MS = 3000

/**
 * Deletes a file and its Markdown text from the object store. A store that fails or is slow
 * only causes a warning, because an effect of the file's actor deletes the same objects.
 * @param place name of the object that contains the file itself.
 */
export async function eraseFile(
  world: Pick<World, 'files' | 'later' | 'log'>,
  place: string,
): Promise<void> {
  const { files } = world
  if (!files) return
  let cancel = () => {}
  const late = new Promise<never>((_, reject) => {
    cancel = world.later(ERASE_MS, () =>
      reject(new Error(`the store did not answer within ${ERASE_MS / 1000} s`)),
    )
  })
  const deletions = Promise.all(objectNames(place).map((name) => files.delete(name)))
  try {
    await Promise.race([deletions, late])
  } catch (error) {
    world.log.warn(
      { event: 'file_deletion_delayed', err: error, blob: place },
      'file not deleted yet',
    )
  } finally {
    cancel()
  }
}
