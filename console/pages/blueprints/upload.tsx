/** The field for choosing files or a folder, by button or drag and drop. */
import { useRef } from 'preact/hooks'
import { Button } from '../../design/button.tsx'
import { useFileDrop } from '../../files/drop.ts'
import type { UploadedFile } from './read-files.ts'
import { blueprintsText as text } from './text.ts'

/** Matches the paths of files that are not read: in hidden folders and in `node_modules`. */
const SKIPPED = /(^|\/)(\.[^/]+|node_modules)\//
/** Maximum size of one file. */
const MAX_FILE_BYTES = 4_194_304
/** Maximum size of all files together. */
const MAX_TOTAL_BYTES = 16_777_216

const pathOf = (file: File): string =>
  file.webkitRelativePath === '' ? file.name : file.webkitRelativePath

/** Reads the chosen files as text, except skipped files and files that are too large. */
async function textsOf(files: readonly File[]): Promise<readonly UploadedFile[]> {
  let left = MAX_TOTAL_BYTES
  const read: UploadedFile[] = []
  for (const file of files) {
    const path = pathOf(file)
    if (SKIPPED.test(`${path}`) || file.size > MAX_FILE_BYTES || file.size > left) continue
    left -= file.size
    read.push({ path, text: await file.text() })
  }
  return read
}

/** Shows the field. `onFiles` receives the files with their texts. */
export function Upload({
  count,
  onFiles,
}: {
  /** Number of chosen files. */
  readonly count: number
  readonly onFiles: (files: readonly UploadedFile[]) => void
}) {
  const single = useRef<HTMLInputElement>(null)
  const folder = useRef<HTMLInputElement>(null)
  const take = async (files: readonly File[]): Promise<void> => {
    if (files.length > 0) onFiles(await textsOf(files))
  }
  const { over, target } = useFileDrop(true, (files) => void take(files))
  const taken = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void => {
    void take([...(currentTarget.files ?? [])]).finally(() => {
      currentTarget.value = ''
    })
  }
  return (
    <section class={over ? 'upload over' : 'upload'} aria-label={text.files} {...target}>
      <p role="status">{count === 0 ? text.drop : text.chosen(count)}</p>
      <div class="row">
        <Button icon="upload" onClick={() => single.current?.click()}>
          {text.chooseFiles}
        </Button>
        <Button onClick={() => folder.current?.click()}>{text.chooseFolder}</Button>
      </div>
      <p class="small soft">{text.filesHint}</p>
      <input
        ref={single}
        type="file"
        multiple
        hidden
        aria-label={text.chooseFiles}
        onChange={taken}
      />
      <input
        ref={folder}
        type="file"
        multiple
        hidden
        aria-label={text.chooseFolder}
        {...{ webkitdirectory: true }}
        onChange={taken}
      />
    </section>
  )
}
