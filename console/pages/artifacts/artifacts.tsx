/** The page of artifacts: a list with filters, the quota, and uploads by button or by dropping. */

import { useRef } from 'preact/hooks'
import type { CallReply } from '../../api/client.ts'
import { useList, useQuery } from '../../api/query.ts'
import { Button, IconButton } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { EmptyCard, Listed } from '../../design/listed.tsx'
import { Failure } from '../../design/states.tsx'
import { designText } from '../../design/text.ts'
import { Time } from '../../design/time.tsx'
import { useFileDrop } from '../../files/drop.ts'
import { FileInput } from '../../files/file-input.tsx'
import { currentUrl, go, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { formatBytes, formatNumber } from '../../text/format.ts'
import { artifactsText as text } from './text.ts'
import { dismissUpload, type Upload, uploadFiles, uploads } from './upload.ts'

type Artifact = CallReply<'artifact.list'>['items'][number]
type Quota = CallReply<'artifact.quota'>

const TYPES = [
  { value: '', label: text.allTypes },
  { value: 'image/', label: text.images },
  { value: 'text/', label: text.texts },
  { value: 'application/json', label: text.json },
  { value: 'application/pdf', label: text.pdf },
  { value: 'audio/', label: text.audio },
  { value: 'video/', label: text.video },
]
/** The limit that the service reports if there is no quota. */
const UNLIMITED = Number.MAX_SAFE_INTEGER

function QuotaBar({ of }: { readonly of: Quota }) {
  const { used_bytes: used, limit_bytes: limit, artifact_count, pending_count } = of
  const shown =
    limit >= UNLIMITED
      ? text.quotaUsed(formatBytes(used))
      : text.quotaOf(formatBytes(used), formatBytes(limit))
  return (
    <div class="quota small">
      <span>{shown}</span>
      <span class="soft">{text.quotaCount(artifact_count)}</span>
      {pending_count > 0 && <span class="soft">{text.pending(pending_count)}</span>}
      {limit < UNLIMITED && (
        <progress aria-label={text.quota} value={used} max={Math.max(1, limit)} />
      )}
    </div>
  )
}

function Uploads({ project, base }: { readonly project: string; readonly base: string }) {
  const own = uploads.value.filter((one) => one.project === project)
  if (own.length === 0) return null
  return (
    <section class="card" aria-label={text.uploads}>
      <header>
        <h2>{text.uploads}</h2>
      </header>
      <ul class="uploads">
        {own.map((one) => (
          <UploadLine key={one.id} of={one} base={base} />
        ))}
      </ul>
    </section>
  )
}
function UploadLine({ of, base }: { readonly of: Upload; readonly base: string }) {
  const { id, name, size, sent, state, artifact, error } = of
  const running = state === 'sending' || state === 'waiting'
  return (
    <li>
      <div class="row apart">
        {artifact ? (
          <a class="grow clip user-text" href={`${base}/artifacts/${artifact}`}>
            {name}
          </a>
        ) : (
          <span class="grow clip user-text">{name}</span>
        )}
        <span class="soft small" role="status">
          {state === 'sending' ? text.sent(formatBytes(sent), formatBytes(size)) : text[state]}
        </span>
        <IconButton
          icon="close"
          label={running ? text.cancel(name) : text.dismiss(name)}
          onClick={() => dismissUpload(id)}
        />
      </div>
      {running && (
        <progress aria-label={text.uploadOf(name)} value={sent} max={Math.max(1, size)} />
      )}
      {error && <Failure error={error} />}
    </li>
  )
}

/** The origin of an artifact: a link to its run, or a label for an upload. */
function Origin({ of, base }: { readonly of: Artifact; readonly base: string }) {
  if (of.run_id === undefined) return <span class="soft">{text.person}</span>
  return (
    <>
      <a class="mono user-text" href={`${base}/runs/${encodeURIComponent(of.run_id)}`}>
        {of.run_id}
      </a>
      {of.step_id !== undefined && <span class="soft user-text"> {of.step_id}</span>}
    </>
  )
}

export default function ArtifactsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}`
  const { query } = currentUrl.value
  const [mime, run, step] = [query.get('type'), query.get('run'), query.get('step')]
  const input = {
    project,
    limit: 50,
    ...(mime && { mime }),
    ...(run && { run_id: run }),
    ...(step && { step_id: step }),
  }
  const list = useList('artifact.list', input, { kinds: ['artifact'] })
  const quota = useQuery('artifact.quota', { project }, { kinds: ['artifact'] })
  const picker = useRef<HTMLInputElement>(null)
  const allowed = may('project.edit')
  const { over, target } = useFileDrop(allowed, (files) => uploadFiles(project, files))
  const filtered = Boolean(mime || run || step)
  const choose = (): void => picker.current?.click()
  return (
    <Page
      title={text.title}
      actions={
        <>
          <CopyCall name="artifact.list" input={input} />
          {allowed && <PageAction label={text.upload} icon="upload" keys="u" onRun={choose} />}
        </>
      }
    >
      <div class={over ? 'stack drop over' : 'stack drop'} {...target}>
        {over && <div class="drop-here">{text.dropNow}</div>}
        <FileInput
          picker={picker}
          label={text.upload}
          onPick={(files) => uploadFiles(project, files)}
        />
        <div class="row filters">
          <SelectField
            label={text.type}
            unlabelled
            value={mime ?? ''}
            choices={TYPES}
            onValue={(value) => setQuery({ type: value })}
          />
          <TextField
            label={text.runFilter}
            unlabelled
            placeholder={text.runFilter}
            value={run ?? ''}
            onValue={(value) => setQuery({ run: value.trim() })}
          />
          <TextField
            label={text.stepFilter}
            unlabelled
            placeholder={text.stepFilter}
            value={step ?? ''}
            onValue={(value) => setQuery({ step: value.trim() })}
          />
          <div class="grow" />
          {quota.state.value.data && <QuotaBar of={quota.state.value.data} />}
        </div>
        <Uploads project={project} base={base} />
        <Listed
          of={list}
          lines={8}
          empty={
            <EmptyCard icon="artifacts" title={filtered ? text.emptyFiltered : text.empty}>
              {filtered ? (
                <Button onClick={() => go(`${base}/artifacts`)}>{text.clear}</Button>
              ) : (
                <>
                  <p>{text.emptyHint}</p>
                  {allowed && <p>{text.drop}</p>}
                </>
              )}
            </EmptyCard>
          }
        >
          {(items) => <List items={items} base={base} />}
        </Listed>
      </div>
    </Page>
  )
}

function List({ items, base }: { readonly items: readonly Artifact[]; readonly base: string }) {
  const rows = useRowKeys<HTMLTableElement>()
  return (
    <div class="table-frame">
      <table class="table" ref={rows}>
        <thead>
          <tr>
            <th scope="col">{text.name}</th>
            <th scope="col">{text.mime}</th>
            <th scope="col" class="number">
              {text.size}
            </th>
            <th scope="col">{text.origin}</th>
            <th scope="col">{text.created}</th>
            <th scope="col">
              <span class="unseen">{text.download}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((one) => (
            <tr key={one.id}>
              <td class="name">
                <a
                  class="user-text"
                  {...rowLink}
                  href={`${base}/artifacts/${encodeURIComponent(one.id)}`}
                >
                  {one.name}
                </a>
              </td>
              <td class="soft user-text">{one.mime_type}</td>
              <td class="number" title={formatNumber(one.size_bytes)}>
                {formatBytes(one.size_bytes)}
              </td>
              <td class="origin">
                <Origin of={one} base={base} />
              </td>
              <td class="nowrap">
                <Time at={one.created_at} relative />
              </td>
              <td class="number">
                <a
                  href={`/v1/projects${base.slice(2)}/artifacts/${one.id}/content?download=true`}
                  download={one.name.split('/').at(-1)}
                  aria-label={designText.about(text.download, one.name)}
                >
                  {text.download}
                </a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
