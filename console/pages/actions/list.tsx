/** The page with the catalog of everything that can be called in a project. */
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { Code } from '../../design/copy.tsx'
import { TableFrame } from '../../design/data-table.tsx'
import { SelectField } from '../../design/field.tsx'
import { Empty, Show } from '../../design/states.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { ListSearch, NothingFound } from '../build/list-search.tsx'
import { matchesText } from '../build/search.ts'
import { CreateDialog } from './create.tsx'
import { actionsText as text } from './text.ts'
import { type Entry, kindWords, Marks, scopeWords } from './words.tsx'

const SCOPES = ['project', 'organization', 'platform'] as const

function Catalog({ entries, base }: { readonly entries: readonly Entry[]; readonly base: string }) {
  const rows = useRowKeys<HTMLTableSectionElement>()
  return (
    <TableFrame label={text.title} headings={[text.name, text.kind, text.scope, text.state]}>
      <tbody ref={rows}>
        {entries.map((entry) => (
          <tr key={`${entry.definition_scope} ${entry.name}`}>
            <td>
              <a
                {...rowLink}
                class="mono user-text"
                href={`${base}/${encodeURIComponent(entry.name)}`}
              >
                {entry.name}
              </a>
              {(entry.title ?? entry.description) && (
                <div class="small soft user-text">
                  {(entry.title ?? entry.description ?? '').slice(0, 200)}
                </div>
              )}
            </td>
            <td>{kindWords[entry.endpoint_kind]}</td>
            <td>{scopeWords[entry.definition_scope]}</td>
            <td>
              <div class="row">
                <Marks entry={entry} />
              </div>
            </td>
          </tr>
        ))}
      </tbody>
    </TableFrame>
  )
}

export default function ActionsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/actions`
  const { query } = currentUrl.value
  const search = query.get('q') ?? ''
  const scope = SCOPES.find((one) => one === query.get('scope'))
  const { state, reload } = useQuery(
    'catalog.actions',
    { project },
    { kinds: ['action', 'worker', 'workflow'] },
  )
  const mayEdit = may('project.edit')
  const create = (): void => setQuery({ new: '1' }, { push: true })
  return (
    <Page
      title={text.title}
      actions={mayEdit && <PageAction label={text.create} keys="c" onRun={create} />}
    >
      <div class="row">
        <ListSearch value={search} />
        <SelectField
          label={text.scopeFilter}
          unlabelled
          value={scope ?? ''}
          choices={[
            { value: '', label: text.all },
            ...SCOPES.map((value) => ({ value, label: scopeWords[value] })),
          ]}
          onValue={(next) => setQuery({ scope: next })}
        />
      </div>
      <Show of={state.value} retry={reload} lines={8}>
        {({ items }) => {
          const found = items.filter(
            ({ name, title = '', description = '', definition_scope }) =>
              (scope === undefined || definition_scope === scope) &&
              matchesText(search, [name, title, description]),
          )
          if (found.length > 0) return <Catalog entries={found} base={base} />
          if (search !== '') return <NothingFound onClear={() => setQuery({ q: '', scope: '' })} />
          return (
            <Empty icon="start" title={text.empty}>
              <p>{text.emptyHint}</p>
              {mayEdit && (
                <Button icon="plus" onClick={create}>
                  {text.create}
                </Button>
              )}
              <p>{text.emptyWorker}</p>
              <Code>{`${text.workerCommand} ${project}`}</Code>
            </Empty>
          )
        }}
      </Show>
      {mayEdit && query.get('new') === '1' && (
        <CreateDialog project={project} onClose={() => setQuery({ new: '' })} />
      )}
    </Page>
  )
}
