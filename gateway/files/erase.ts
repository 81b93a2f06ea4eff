/** Deletes the objects of files. */
import { objectNames } from '../../protocol/sessions/attachments.ts'
import type { Files } from '../ports.ts'

/**
 * Deletes a file and its Markdown text from the object store. Errors are ignored, because an effect
 * of the file's actor deletes the same objects.
 * @param place name of the object that contains the file itself.
 */
export async function eraseFile(files: Files | undefined, place: string): Promise<void> {
  for (const name of objectNames(place)) await files?.delete(name).catch(() => {})
}
