/** The catalog of everything that can be called in a project. */
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { Code } from '../../design/copy.tsx'
import { SearchField, SelectField } from '../../design/field.tsx'
import { Empty, Show } from '../../design/states.tsx'
import { place, setQuery } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { matchesText } from '../build/search.ts'
import { buildText } from '../build/text.ts'
import { CreateDialog } from './create.tsx'
import { actionsText as text } from './text.ts'
import { type Entry, kindWords, Marks, scopeWords } from './words.tsx'

const SCOPES = ['project', 'organization', 'platform'] as const

function Catalog({ entries, base }: { readonly entries: readonly Entry[]; readonly base: string }) {
  const rows = useRowKeys<HTMLTableSectionElement>()
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region needs the keyboard
    <div class="table-frame" role="region" aria-label={text.title} tabIndex={0}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">{text.name}</th>
            <th scope="col">{text.kind}</th>
            <th scope="col">{text.scope}</th>
            <th scope="col">{text.state}</th>
          </tr>
        </thead>
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
      </table>
    </div>
  )
}

export default function ActionsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/actions`
  const { query } = place.value
  const search = query.get('q') ?? ''
  const scope = SCOPES.find((one) => one === query.get('scope'))
  const { state, reload } = useQuery(
    'catalog.actions',
    { project },
    { kinds: ['action', 'worker', 'workflow'] },
  )
  const mayEdit = may('project.edit')
  const create = (): void => setQuery({ new: '1' }, { push: true })
  useCommands(
    mayEdit ? [{ id: 'action.new', label: text.create, icon: 'plus', keys: 'c', run: create }] : [],
    [mayEdit],
  )
  return (
    <Page
      title={text.title}
      actions={
        mayEdit && (
          <Button kind="primary" icon="plus" onClick={create}>
            {text.create}
          </Button>
        )
      }
    >
      <div class="row">
        <div class="list-search">
          <SearchField label={buildText.search} value={search} onValue={(q) => setQuery({ q })} />
        </div>
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
          if (search !== '')
            return (
              <Empty icon="search" title={buildText.nothingFound}>
                <Button onClick={() => setQuery({ q: '', scope: '' })}>
                  {buildText.clearSearch}
                </Button>
              </Empty>
            )
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
