/**
 * The newest files of the agent's workspace, read by actions of its environment.
 *
 * Invariants:
 * W1. The panel is absent unless the person may list and read the files.
 * W2. A closed panel sends only the requests that check the permission.
 */
import { useEffect, useMemo, useState } from 'preact/hooks'
import {
  MAX_DOWNLOAD,
  type WorkspaceFile,
  WorkspaceFiles,
  type WorkspaceList,
} from '../../../../client/chat/files/workspace-files.ts'
import { call } from '../../../api/client.ts'
import { Button } from '../../../design/button.tsx'
import { Notice } from '../../../design/states.tsx'
import { Time } from '../../../design/time.tsx'
import { formatBytes } from '../../../text/format.ts'
import { sessionsText as text } from '../text.ts'

/**
 * Milliseconds until the object URL of a file is revoked. The browser has read the file by then.
 */
const RELEASE_MS = 60_000

/**
 * Saves bytes as a file. Their media type is replaced, so the browser never shows them as a
 * document.
 */
function save(bytes: Blob, name: string): void {
  const href = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = href
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(href), RELEASE_MS)
}

/** Shows the files. When `changed` changes, an open panel reads them again. */
export function WorkspaceFilesPanel({
  project,
  environment_id,
  changed,
}: {
  readonly project: string
  readonly environment_id: string
  readonly changed: number
}) {
  const files = useMemo(
    () =>
      new WorkspaceFiles(
        (action_name, body) => call('action.invoke', { project, action_name, ...body }),
        environment_id,
      ),
    [project, environment_id],
  )
  const [allowed, setAllowed] = useState(false)
  const [isOpen, setOpen] = useState(false)
  const [list, setList] = useState<WorkspaceList>()
  const [fault, setFault] = useState('')
  const [reads, setReads] = useState(0)
  useEffect(() => {
    let isShown = true
    files.allowed().then(
      (isAllowed) => isShown && setAllowed(isAllowed),
      // An error is ignored, because the check is repeated when `changed` changes.
      () => {},
    )
    return () => {
      isShown = false
    }
  }, [files, allowed ? 0 : changed])
  useEffect(() => {
    if (!isOpen || !allowed) return
    let isShown = true
    files.list().then(
      (found) => {
        if (!isShown) return
        setList(found)
        setFault('')
      },
      (error: unknown) => isShown && setFault(error instanceof Error ? error.message : `${error}`),
    )
    return () => {
      isShown = false
    }
  }, [files, isOpen, allowed, changed, reads])
  if (!allowed) return null
  return (
    <details class="folded" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{text.files}</summary>
      {isOpen && (
        <div class="folded-body stack close">
          {fault !== '' && (
            <Notice tone="bad">
              <p class="user-text">{fault}</p>
              <Button onClick={() => setReads(reads + 1)}>{text.reload}</Button>
            </Notice>
          )}
          {!list && fault === '' && (
            <p class="soft" role="status">
              {text.filesReading}
            </p>
          )}
          {list?.files.length === 0 && <p class="soft">{text.filesNone}</p>}
          {list?.truncated && <p class="soft small">{text.filesSome}</p>}
          <ul class="stack close" aria-label={text.files}>
            {list?.files.map((file) => (
              <FileRow key={file.path} file={file} files={files} />
            ))}
          </ul>
        </div>
      )}
    </details>
  )
}

const FileRow = ({
  file: { path, size, modified_at },
  files,
}: {
  readonly file: WorkspaceFile
  readonly files: WorkspaceFiles
}) => (
  <li class="row">
    <span class="grow user-text">
      {path} <span class="soft small">{formatBytes(size)}</span>{' '}
      <span class="soft small">
        <Time at={modified_at} />
      </span>
    </span>
    {size > MAX_DOWNLOAD ? (
      <span class="soft small">{text.tooLarge}</span>
    ) : (
      <Button
        icon="download"
        onClick={async () => save(await files.read(path), path.split('/').at(-1) || path)}
      >
        {text.download(path.split('/').at(-1) ?? path)}
      </Button>
    )}
  </li>
)
