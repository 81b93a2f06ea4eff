/** The audit log of a project or of the organization, with filters, details and export. */
import { useMemo, useRef, useState } from 'preact/hooks'
import type { AuditEntry } from '../../../protocol/projects/rows.ts'
import { type CallInput, call } from '../../api/client.ts'
import { type QueryOptions, useList, useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { Listed } from '../../design/listed.tsx'
import { showDone } from '../../design/notify.ts'
import { Menu } from '../../design/overlay.tsx'
import { Badge, Empty, type Tone } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page } from '../../shell/page.tsx'
import { mayInOrganization, projects } from '../../shell/session.ts'
import { changeSummary } from './changes.ts'
import { Entry } from './entry.tsx'
import { FilterBar } from './filter-bar.tsx'
import { filterNames, filtersOf } from './filters.ts'
import { saveFile } from './save-file.ts'
import { csvOf, jsonLinesOf } from './table-file.ts'
import { auditText as text } from './text.ts'

const tones: Readonly<Record<AuditEntry['action'], Tone>> = {
  create: 'good',
  update: 'info',
  delete: 'bad',
}
/** Maximum number of entries in an exported file. */
const MAX_EXPORTED = 20_000
const PAGE_SIZE = 200
/**
 * Kinds of records whose changes reload the log of a project. Kinds that change constantly are
 * omitted.
 */
const AUDITED: QueryOptions = {
  kinds: [
    ...['action', 'agent', 'assignment', 'blueprint', 'channel', 'environment', 'key', 'loop'],
    ...['principal', 'project', 'repository_host', 'resolver', 'role', 'secret', 'skill', 'table'],
    ...['toolkit', 'webhook', 'workflow'],
  ],
}

type Filters = Omit<CallInput<'audit.list'>, 'limit'>
/** Loads all entries that match the filters, at most `MAX_EXPORTED`. */
async function loadAll(
  project: string | undefined,
  filters: Filters,
  signal: AbortSignal,
  onCount: (count: number) => void,
): Promise<{ readonly entries: readonly AuditEntry[]; readonly complete: boolean }> {
  const entries: AuditEntry[] = []
  let cursor: string | undefined
  do {
    const part = { ...filters, limit: PAGE_SIZE, ...(cursor !== undefined && { cursor }) }
    const page =
      project === undefined
        ? await call('audit.list', part, { signal })
        : await call('audit.project', { ...part, project }, { signal })
    entries.push(...page.items)
    onCount(entries.length)
    cursor = page.next_cursor
  } while (cursor !== undefined && entries.length < MAX_EXPORTED)
  return { entries, complete: cursor === undefined }
}

function Export({
  project,
  filters,
}: {
  readonly project: string | undefined
  readonly filters: Filters
}) {
  const [count, setCount] = useState<number>()
  const stop = useRef<AbortController>(undefined)
  const save = async (form: 'csv' | 'jsonl'): Promise<void> => {
    stop.current = new AbortController()
    setCount(0)
    try {
      const { entries, complete } = await loadAll(project, filters, stop.current.signal, setCount)
      const name = `audit-log-${new Date().toISOString().slice(0, 10)}.${form}`
      if (form === 'csv') saveFile(name, 'text/csv;charset=utf-8', csvOf(entries))
      else saveFile(name, 'application/jsonl', jsonLinesOf(entries))
      showDone((complete ? text.exported : text.exportedPart)(entries.length))
    } finally {
      setCount(undefined)
    }
  }
  return count === undefined ? (
    <Menu
      label={text.export}
      icon="download"
      items={[
        { label: text.exportCsv, icon: 'download', onSelect: () => save('csv') },
        { label: text.exportJson, icon: 'download', onSelect: () => save('jsonl') },
      ]}
    />
  ) : (
    <span class="row">
      <span role="status">{text.exporting(count)}</span>
      <Button onClick={() => stop.current?.abort()}>{text.stop}</Button>
    </span>
  )
}

/** Shows the log of a project, or of the organization if `project` is absent. */
export function AuditLog({ project }: { readonly project?: string }) {
  const { query } = currentUrl.value
  const key = filterNames.map((name) => query.get(name) ?? '').join('\n')
  const filters = useMemo(() => filtersOf(query, Date.now()), [key])
  const ofProject = useList(
    'audit.project',
    project === undefined ? undefined : { project, ...filters, limit: 100 },
    AUDITED,
  )
  const ofAll = useList(
    'audit.list',
    project === undefined ? { ...filters, limit: 100 } : undefined,
  )
  const list = project === undefined ? ofAll : ofProject
  const principals =
    useQuery(
      'principal.list',
      project === undefined ? undefined : { project, include_disabled: true, limit: 200 },
    ).state.value.data?.items ?? []
  const { items } = list.state.value
  const openId = query.get('entry')
  const at = items.findIndex(({ id }) => id === openId)
  const opened = items[at]
  // The principals of organization keys are not in the list of principals of any project, so their
  // names are taken from the keys.
  const keys =
    useQuery(
      'key.list_organization',
      mayInOrganization('organization.admin') ? { limit: 100 } : undefined,
    ).state.value.data?.items ?? []
  const nameOf = ({ actor_id, actor_type }: AuditEntry) =>
    principals.find(({ id }) => id === actor_id)?.name ??
    keys.find(({ principal_id }) => principal_id === actor_id)?.name ??
    (actor_type === 'system' ? text.system : actor_id)
  const projectName = (id: string) => projects.value.find((one) => one.id === id)?.name ?? id
  const columns: readonly Column<AuditEntry>[] = [
    { name: text.time, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: text.action,
      cell: ({ action }) => <Badge tone={tones[action]}>{text[action]}</Badge>,
    },
    {
      name: text.what,
      cell: (entry) => (
        <div class="audit-what">
          <button
            type="button"
            class="link"
            title={text.open(text[entry.action], entry.resource_name ?? entry.resource_id)}
            onClick={() => setQuery({ entry: entry.id }, { push: true })}
          >
            <span class="user-text">{entry.resource_name ?? entry.resource_id}</span>
          </button>
          <div class="small soft">{entry.resource_type.replaceAll('_', ' ')}</div>
        </div>
      ),
    },
    {
      name: text.who,
      cell: (entry) => (
        <>
          <span class="user-text" title={entry.actor_id}>
            {nameOf(entry)}
          </span>
          {entry.actor_type !== 'system' && (
            <div class="small soft">{text[`kind_${entry.actor_type}`]}</div>
          )}
        </>
      ),
    },
    {
      name: text.changes,
      cell: ({ changes }) => <div class="small user-text changes">{changeSummary(changes)}</div>,
    },
    ...(project === undefined
      ? [
          {
            name: text.project,
            cell: ({ project_id }: AuditEntry) => (
              <span class="user-text">{project_id ? projectName(project_id) : '–'}</span>
            ),
          },
        ]
      : []),
  ]
  return (
    <Page
      title={project === undefined ? text.organizationTitle : text.title}
      actions={<Export project={project} filters={filters} />}
    >
      <FilterBar everywhere={project === undefined} />
      <Listed
        of={list}
        empty={
          <Empty icon="audit" title={text.empty}>
            <p>{text.emptyHint}</p>
          </Empty>
        }
      >
        {(entries) => (
          <DataTable label={text.title} columns={columns} items={entries} keyOf={({ id }) => id} />
        )}
      </Listed>
      {opened && (
        <Entry
          of={opened}
          actorName={nameOf(opened)}
          previous={items[at - 1]?.id}
          next={items[at + 1]?.id}
          onClose={() => setQuery({ entry: undefined })}
        />
      )}
    </Page>
  )
}
