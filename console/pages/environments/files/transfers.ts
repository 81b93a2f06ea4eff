import { useState } from 'preact/hooks'
import { showDone } from '../../../design/notify.ts'
import { formatBytes } from '../../../text/format.ts'
import { environmentsText as text } from '../text.ts'
import { type Entry, readFile, type Workspace, writeFile } from './access.ts'
import { nameOf } from './path.tsx'

/**
 * Milliseconds until the object URL of a download is revoked. The browser has read the file by
 * then.
 */
const RELEASE_MS = 60_000

function saveAs(name: string, bytes: BlobPart): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([bytes]))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), RELEASE_MS)
}

/**
 * Uploads and downloads the files of a workspace. `progress` describes the current transfer.
 * Without a transfer, it is an empty text.
 */
export function useTransfers(of: Workspace) {
  const [progress, setProgress] = useState('')
  return {
    progress,
    async upload(folder: string, files: readonly File[]): Promise<void> {
      try {
        for (const file of files) {
          const target = folder === '' ? file.name : `${folder}/${file.name}`
          await writeFile(of, target, file, (done) =>
            setProgress(text.uploading(file.name, formatBytes(done), formatBytes(file.size))),
          )
          showDone(text.uploaded(file.name))
        }
      } finally {
        setProgress('')
      }
    },
    async download({ path }: Entry): Promise<void> {
      try {
        const { bytes } = await readFile(
          of,
          path,
          Number.MAX_SAFE_INTEGER,
          new AbortController().signal,
          (done) => setProgress(text.downloading(formatBytes(done))),
        )
        saveAs(nameOf(path), bytes)
      } finally {
        setProgress('')
      }
    },
  }
}
