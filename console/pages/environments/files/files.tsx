/** The files of an environment's workspace: folders, previews, download, upload, deletion. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from '../../../api/client.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { Confirm } from '../../../design/overlay.tsx'
import { Empty, Failure, Notice, Skeleton } from '../../../design/states.tsx'
import { useFileDrop } from '../../../files/drop.ts'
import { FileInput } from '../../../files/file-input.tsx'
import { Preview } from '../../../preview/preview.tsx'
import { currentUrl, setQuery } from '../../../router/router.ts'
import { may } from '../../../shell/session.ts'
import { environmentsText as text } from '../text.ts'
import { deletePath, type Entry, readFile, type Workspace } from './access.ts'
import { EntryTable } from './entries.tsx'
import { FolderPath, folderOf, nameOf } from './path.tsx'
import { useTransfers } from './transfers.ts'
import { useFolder } from './use-folder.ts'

const LIST = 'actions.execute.environment.files.list'

/**
 * Shows the files. If the worker is not connected, they are loaded only when the user requests it,
 * because loading starts the worker.
 * @param props.connected whether the worker is connected.
 */
export function FilesPart({
  project,
  id,
  connected,
}: {
  readonly project: string
  readonly id: string
  readonly connected: boolean
}) {
  const [wanted, setWanted] = useState(connected)
  useEffect(() => {
    if (connected) setWanted(true)
  }, [connected])
  if (!may(LIST))
    return (
      <Empty icon="keys" title={text.mayNot}>
        <p>{text.mayNotHint(LIST)}</p>
      </Empty>
    )
  if (!wanted)
    return (
      <section class="card">
        <Empty icon="artifacts" title={text.notConnected}>
          <p>{text.filesHint}</p>
          <Button kind="primary" onClick={() => setWanted(true)}>
            {text.openFiles}
          </Button>
        </Empty>
      </section>
    )
  return <Files of={{ project, id }} />
}

function Files({ of }: { readonly of: Workspace }) {
  const { query } = currentUrl.value
  const path = query.get('path') ?? ''
  const file = query.get('file') ?? ''
  const [deleting, setDeleting] = useState<Entry>()
  const { folder, loading, error, reload } = useFolder(of, path)
  /** The fault of the last upload, until the user continues. */
  const [failed, setFailed] = useState<ApiError>()
  useEffect(() => setFailed(undefined), [path])
  const { progress, upload, download } = useTransfers(of)
  const mayWrite = may('actions.execute.environment.files.write')
  const mayDelete = may('actions.execute.environment.files.delete')
  const send = (files: readonly File[]): void => {
    setFailed(undefined)
    void upload(path, files)
      .catch((fault: unknown) => {
        if (!(fault instanceof ApiError)) throw fault
        setFailed(fault)
      })
      .finally(reload)
  }
  const { over, target } = useFileDrop(mayWrite, send)
  const opened = folder?.entries.find((entry) => entry.path === file && !entry.dir)
  return (
    <div class={over ? 'stack close drop over' : 'stack close drop'} {...target}>
      {over && <div class="drop-here">{text.dropNow}</div>}
      <div class="row apart">
        <FolderPath path={path} />
        <div class="row">
          <IconButton icon="reload" label={text.reload} disabled={loading} onClick={reload} />
          <FilePicker mayWrite={mayWrite} onPick={send} />
        </div>
      </div>
      <div role="status">{progress !== '' && <Notice>{progress}</Notice>}</div>
      {failed && <Failure error={failed} />}
      {error && <Failure error={error} retry={reload} />}
      {!folder && loading && !error && <Skeleton lines={8} />}
      {folder?.note && <Notice>{folder.note}</Notice>}
      {folder && folder.entries.length === 0 && (
        <section class="card">
          <Empty icon="artifacts" title={text.emptyFolder} />
        </section>
      )}
      {folder && folder.entries.length > 0 && (
        <EntryTable
          entries={folder.entries}
          onDownload={download}
          onDelete={mayDelete ? setDeleting : undefined}
        />
      )}
      {opened && <OpenedFile of={of} entry={opened} />}
      {deleting && (
        <Confirm
          title={text.deleteFileTitle}
          action={text.deleteFile}
          danger
          onConfirm={async () => {
            await deletePath(of, deleting)
            if (file.startsWith(deleting.path))
              setQuery({ file: '', path: folderOf(deleting.path) })
            reload()
          }}
          onClose={() => setDeleting(undefined)}
        >
          <p class="user-text">{text.deleteFolderHint(deleting.path)}</p>
        </Confirm>
      )}
    </div>
  )
}

/** The button that uploads files. The input stays in the page without the permission to write. */
function FilePicker({
  mayWrite,
  onPick,
}: {
  readonly mayWrite: boolean
  onPick(files: readonly File[]): void
}) {
  const picker = useRef<HTMLInputElement>(null)
  return (
    <>
      {mayWrite && (
        <Button icon="upload" onClick={() => picker.current?.click()}>
          {text.upload}
        </Button>
      )}
      <FileInput picker={picker} label={text.upload} onPick={onPick} />
    </>
  )
}

function OpenedFile({ of, entry }: { readonly of: Workspace; readonly entry: Entry }) {
  return (
    <section class="card">
      <header>
        <h2 class="user-text">{nameOf(entry.path)}</h2>
        <IconButton icon="close" label={text.closeFile} onClick={() => setQuery({ file: '' })} />
      </header>
      <div class="body">
        <Preview
          key={entry.path}
          name={entry.path}
          size={entry.size}
          version={`${entry.path} ${entry.modified_at}`}
          load={(most, signal) => readFile(of, entry.path, most, signal)}
        />
      </div>
    </section>
  )
}
