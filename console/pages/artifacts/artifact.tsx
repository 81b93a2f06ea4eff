/** The page of one artifact, with its preview, origin, download, signed link and deletion. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { type CallReply, call, send } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { useRefusal } from '../../api/refusal.ts'
import { Button, LinkButton } from '../../design/button.tsx'
import { Code, CopyButton, CopyCall } from '../../design/copy.tsx'
import { SelectField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Dialog, Menu } from '../../design/overlay.tsx'
import { Badge, Failure, Skeleton } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { Tree } from '../../design/tree.tsx'
import { Who } from '../../people/who.tsx'
import { type FileStart, Preview } from '../../preview/preview.tsx'
import { readStart } from '../../preview/read.ts'
import { go } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { current, may } from '../../shell/session.ts'
import { formatBytes, formatNumber } from '../../text/format.ts'
import { artifactsText as text } from './text.ts'

type Artifact = CallReply<'artifact.get'>

/** Returns the path from which the content of an artifact is downloaded. */
const contentOf = (project: string, id: string): string =>
  `/v1/projects/${encodeURIComponent(project)}/artifacts/${encodeURIComponent(id)}/content`

export default function ArtifactPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const id = params['id'] ?? ''
  const base = `/p/${encodeURIComponent(project)}`
  const input = { project, artifact_id: id }
  const { state, reload } = useQuery('artifact.get', input, {
    kinds: ['artifact'],
    id,
  })
  const [open, setOpen] = useState<'link' | 'delete'>()
  const { data, error, loading } = state.value
  const crumbs = [{ label: text.title, href: `${base}/artifacts` }]
  if (!data)
    return (
      <Page title={id} crumbs={crumbs}>
        {error ? <Failure error={error} retry={reload} /> : loading && <Skeleton lines={8} />}
      </Page>
    )
  const mayDelete = may('project.admin') || data.owned_by === current.value?.principal.id
  const remove = async (): Promise<void> => {
    await call('artifact.delete', input)
    showDone(text.deleted)
    go(`${base}/artifacts`)
  }
  return (
    <Page
      title={data.name}
      crumbs={crumbs}
      actions={
        <>
          <CopyCall name="artifact.get" input={input} />
          <Menu
            label={text.details}
            items={[
              { label: text.link, icon: 'external', onSelect: () => setOpen('link') },
              ...(mayDelete
                ? [
                    {
                      label: text.delete,
                      icon: 'trash' as const,
                      danger: true,
                      onSelect: () => setOpen('delete'),
                    },
                  ]
                : []),
            ]}
          />
          <LinkButton
            kind="primary"
            icon="download"
            href={`${contentOf(project, id)}?download=true`}
            download={data.name.split('/').at(-1) ?? ''}
          >
            {text.download}
          </LinkButton>
        </>
      }
    >
      {error && <Failure error={error} retry={reload} />}
      <div class="artifact">
        <section class="card">
          <div class="body">
            <Preview
              name={data.name}
              mime={data.mime_type}
              size={data.size_bytes}
              version={data.id}
              address={contentOf(project, id)}
              load={async (most, signal): Promise<FileStart> =>
                readStart(await send('GET', contentOf(project, id), undefined, { signal }), most)
              }
            />
          </div>
        </section>
        <Facts of={data} base={base} project={project} />
      </div>
      {open === 'link' && (
        <SignedLink project={project} id={id} onClose={() => setOpen(undefined)} />
      )}
      {open === 'delete' && (
        <Confirm
          title={text.deleteTitle}
          action={text.delete}
          danger
          onConfirm={remove}
          onClose={() => setOpen(undefined)}
        >
          <p class="user-text">{text.deleteHint(data.name)}</p>
        </Confirm>
      )}
    </Page>
  )
}

const Fact = ({
  name,
  children,
}: {
  readonly name: string
  readonly children: ComponentChildren
}) =>
  children === undefined || children === null || children === false ? null : (
    <>
      <dt>{name}</dt>
      <dd class="user-text">{children}</dd>
    </>
  )

function Facts({
  of,
  base,
  project,
}: {
  readonly of: Artifact
  readonly base: string
  readonly project: string
}) {
  const { metadata = {}, conversion } = of
  const session = metadata['session_id']
  return (
    <section class="card">
      <header>
        <h2>{text.details}</h2>
        <CopyButton value={of.id} label={text.copyId} />
      </header>
      <div class="body stack">
        <dl class="facts">
          <Fact name={text.id}>
            <span class="mono">{of.id}</span>
          </Fact>
          <Fact name={text.mime}>{of.mime_type}</Fact>
          <Fact name={text.size}>
            <span title={formatNumber(of.size_bytes)}>{formatBytes(of.size_bytes)}</span>
          </Fact>
          <Fact name={text.visibility}>
            <Badge>{of.visibility}</Badge>
          </Fact>
          <Fact name={text.run}>
            {of.run_id && (
              <a class="mono" href={`${base}/runs/${encodeURIComponent(of.run_id)}`}>
                {of.run_id}
              </a>
            )}
          </Fact>
          <Fact name={text.step}>{of.step_id}</Fact>
          <Fact name={text.job}>{of.job_id}</Fact>
          <Fact name={text.attempt}>{of.attempt}</Fact>
          <Fact name={text.worker}>{of.worker_session_id}</Fact>
          <Fact name={text.session}>
            {typeof session === 'string' && (
              <a class="mono" href={`${base}/sessions/${encodeURIComponent(session)}`}>
                {session}
              </a>
            )}
          </Fact>
          <Fact name={text.owner}>{of.owned_by && <Who project={project} id={of.owned_by} />}</Fact>
          <Fact name={text.createdBy}>
            {of.created_by && <Who project={project} id={of.created_by} />}
          </Fact>
          <Fact name={text.created}>
            <Time at={of.created_at} />
          </Fact>
          <Fact name={text.updated}>{of.updated_at && <Time at={of.updated_at} />}</Fact>
          <Fact name={text.conversion}>
            {conversion && `${conversion.state} ${conversion.error ?? ''}`}
          </Fact>
          <Fact name={text.sha}>{of.sha256 && <span class="mono">{of.sha256}</span>}</Fact>
        </dl>
        {Object.keys(metadata).length > 0 && (
          <>
            <h3>{text.metadata}</h3>
            <Tree value={metadata} />
          </>
        )}
      </div>
    </section>
  )
}

const PERIODS_MINUTES = [5, 15, 30, 60]
/** The dialog that creates a link for reading the file without a credential. */
function SignedLink({
  project,
  id,
  onClose,
}: {
  readonly project: string
  readonly id: string
  readonly onClose: () => void
}) {
  const [minutes, setMinutes] = useState('15')
  const [made, setMade] = useState<CallReply<'artifact.signed_url'>>()
  const { error, attempt } = useRefusal()
  const make = async (): Promise<void> => {
    await attempt(async () => {
      const ttl_seconds = Number(minutes) * 60
      setMade(await call('artifact.signed_url', { project, artifact_id: id, ttl_seconds }))
    })
  }
  return (
    <Dialog title={text.linkTitle} onClose={onClose}>
      <p>{text.linkHint}</p>
      <SelectField
        label={text.linkFor}
        value={minutes}
        choices={PERIODS_MINUTES.map((count) => ({
          value: String(count),
          label: text.minutes(count),
        }))}
        onValue={setMinutes}
      />
      {error && <Failure error={error} />}
      {made && (
        <div role="status" class="stack close">
          <Code>{new URL(made.url, location.origin).href}</Code>
          <p class="small soft">
            {text.linkUntil} <Time at={made.expires_at} />
          </p>
        </div>
      )}
      <div class="actions">
        <Button kind="primary" onClick={make}>
          {text.linkMake}
        </Button>
      </div>
    </Dialog>
  )
}
