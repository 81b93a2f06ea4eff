/** Deletes the objects of files. */
import { objectNames } from '../../protocol/sessions/attachments.ts'
import type { Files } from '../ports.ts'

/**
 * Deletes the bytes of a file and its Markdown text. Errors are ignored, because an effect of the
 * file's actor deletes the same objects.
 * @param place name of the bytes of the file.
 */
export async function eraseFile(files: Files | undefined, place: string): Promise<void> {
  for (const name of objectNames(place)) await files?.delete(name).catch(() => {})
}
