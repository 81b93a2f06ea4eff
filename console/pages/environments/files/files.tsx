/** The files of an environment's workspace: folders, previews, download, upload, deletion. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from '../../../api/client.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { showDone } from '../../../design/notify.ts'
import { Confirm } from '../../../design/overlay.tsx'
import { Empty, Failure, Notice, Skeleton } from '../../../design/states.tsx'
import { designText } from '../../../design/text.ts'
import { Time } from '../../../design/time.tsx'
import { useFileDrop } from '../../../files/drop.ts'
import { Preview } from '../../../preview/preview.tsx'
import { place, setQuery } from '../../../router/router.ts'
import { may } from '../../../shell/session.ts'
import { formatBytes, formatNumber } from '../../../text/format.ts'
import { environmentsText as text } from '../text.ts'
import {
  deletePath,
  type Entry,
  type Folder,
  listFolder,
  readFile,
  type Workspace,
  writeFile,
} from './access.ts'

const LIST = 'actions.execute.environment.files.list'
/**
 * Milliseconds until the object URL of a download is revoked. The browser has read the file by
 * then.
 */
const RELEASE_MS = 60_000
const nameOf = (path: string): string => path.split('/').at(-1) ?? path
const folderOf = (path: string): string => path.split('/').slice(0, -1).join('/')

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
  const { query } = place.value
  const path = query.get('path') ?? ''
  const file = query.get('file') ?? ''
  const [folder, setFolder] = useState<{ readonly path: string; readonly of: Folder }>()
  const [error, setError] = useState<ApiError>()
  const [loading, setLoading] = useState(true)
  const [again, setAgain] = useState(0)
  const [deleting, setDeleting] = useState<Entry>()
  const [progress, setProgress] = useState('')
  const picker = useRef<HTMLInputElement>(null)
  const { project, id } = of
  useEffect(() => {
    let current = true
    setLoading(true)
    setError(undefined)
    listFolder(of, path)
      .then(
        (found) => current && setFolder({ path, of: found }),
        (fault: unknown) => {
          if (!(fault instanceof ApiError)) throw fault
          if (current) setError(fault)
        },
      )
      .finally(() => current && setLoading(false))
    return () => {
      current = false
    }
  }, [project, id, path, again])
  const reload = (): void => setAgain(again + 1)
  const mayWrite = may('actions.execute.environment.files.write')
  const mayDelete = may('actions.execute.environment.files.delete')
  const upload = async (files: readonly File[]): Promise<void> => {
    try {
      for (const one of files) {
        const target = path === '' ? one.name : `${path}/${one.name}`
        await writeFile(of, target, one, (done) =>
          setProgress(text.uploading(one.name, formatBytes(done), formatBytes(one.size))),
        )
        showDone(text.uploaded(one.name))
      }
    } finally {
      setProgress('')
      reload()
    }
  }
  const send = (files: readonly File[]): void =>
    void upload(files).catch((fault: unknown) => {
      if (!(fault instanceof ApiError)) throw fault
      setError(fault)
    })
  const { over, target } = useFileDrop(mayWrite, send)
  const download = async (entry: Entry): Promise<void> => {
    try {
      const { bytes } = await readFile(
        of,
        entry.path,
        Number.MAX_SAFE_INTEGER,
        new AbortController().signal,
        (done) => setProgress(text.downloading(formatBytes(done))),
      )
      const link = document.createElement('a')
      link.href = URL.createObjectURL(new Blob([bytes]))
      link.download = nameOf(entry.path)
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), RELEASE_MS)
    } finally {
      setProgress('')
    }
  }
  const shown = folder?.path === path ? folder.of : undefined
  const opened = shown?.entries.find((entry) => entry.path === file && !entry.dir)
  const steps = path === '' ? [] : path.split('/')
  return (
    <div class={over ? 'stack close drop over' : 'stack close drop'} {...target}>
      {over && <div class="drop-here">{text.dropNow}</div>}
      <div class="row apart">
        <nav class="row path" aria-label={text.path}>
          <Button kind="quiet" onClick={() => setQuery({ path: '', file: '' }, { push: true })}>
            {text.workspace}
          </Button>
          {steps.map((name, index) => (
            <span class="row" key={index}>
              <span class="soft">/</span>
              <Button
                kind="quiet"
                onClick={() =>
                  setQuery({ path: steps.slice(0, index + 1).join('/'), file: '' }, { push: true })
                }
              >
                <span class="user-text">{name}</span>
              </Button>
            </span>
          ))}
        </nav>
        <div class="row">
          <IconButton icon="reload" label={text.reload} disabled={loading} onClick={reload} />
          {mayWrite && (
            <Button icon="upload" onClick={() => picker.current?.click()}>
              {text.upload}
            </Button>
          )}
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label={text.upload}
            onChange={({ currentTarget }) => {
              const files = [...(currentTarget.files ?? [])]
              currentTarget.value = ''
              send(files)
            }}
          />
        </div>
      </div>
      <div role="status">{progress !== '' && <Notice>{progress}</Notice>}</div>
      {error && <Failure error={error} retry={reload} />}
      {!shown && loading && !error && <Skeleton lines={8} />}
      {shown?.note && <Notice>{shown.note}</Notice>}
      {shown && shown.entries.length === 0 && (
        <section class="card">
          <Empty icon="artifacts" title={text.emptyFolder} />
        </section>
      )}
      {shown && shown.entries.length > 0 && (
        <div class="table-frame files">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{text.name}</th>
                <th scope="col">{text.kind}</th>
                <th scope="col" class="number">
                  {text.size}
                </th>
                <th scope="col">{text.modified}</th>
                <th scope="col">
                  <span class="unseen">{text.actions}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.entries.map((entry) => (
                <tr key={entry.path}>
                  <td class="name">
                    <button
                      type="button"
                      class="link user-text"
                      onClick={() =>
                        setQuery(
                          entry.dir ? { path: entry.path, file: '' } : { file: entry.path },
                          { push: true },
                        )
                      }
                    >
                      {nameOf(entry.path)}
                      {entry.dir && '/'}
                    </button>
                  </td>
                  <td class="soft">{entry.dir ? text.folder : text.file}</td>
                  <td class="number" title={formatNumber(entry.size)}>
                    {entry.dir ? '' : formatBytes(entry.size)}
                  </td>
                  <td class="nowrap">
                    <Time at={entry.modified_at} relative />
                  </td>
                  <td class="number nowrap">
                    {!entry.dir && (
                      <IconButton
                        icon="download"
                        label={designText.about(text.download, nameOf(entry.path))}
                        onClick={() => download(entry)}
                      />
                    )}
                    {mayDelete && (
                      <IconButton
                        icon="trash"
                        danger
                        label={text.deleteFileOf(nameOf(entry.path))}
                        onClick={() => setDeleting(entry)}
                      />
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {opened && (
        <section class="card">
          <header>
            <h2 class="user-text">{nameOf(opened.path)}</h2>
            <IconButton
              icon="close"
              label={text.closeFile}
              onClick={() => setQuery({ file: '' })}
            />
          </header>
          <div class="body">
            <Preview
              key={opened.path}
              name={opened.path}
              size={opened.size}
              version={`${opened.path} ${opened.modified_at}`}
              load={(most, signal) => readFile(of, opened.path, most, signal)}
            />
          </div>
        </section>
      )}
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
