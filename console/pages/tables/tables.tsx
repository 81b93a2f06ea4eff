import { commandOf } from '../../api/call-text.ts'
import { useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { Code, CopyCall } from '../../design/copy.tsx'
import { SearchField } from '../../design/field.tsx'
import { EmptyCard, Listed } from '../../design/listed.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { CreateTable } from './create.tsx'
import { tablesText as text } from './text.ts'

export default function TablesPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/tables`
  const { query } = currentUrl.value
  const find = query.get('find') ?? ''
  const input = { project, limit: 100 }
  const list = useList('table.list', input, { kinds: ['table'] })
  const { items } = list.state.value
  const allowed = may('project.edit')
  const shown = items.filter(({ name, description = '' }) =>
    `${name} ${description}`.toLowerCase().includes(find.toLowerCase()),
  )
  const rows = useRowKeys<HTMLTableElement>()
  const create = (): void => setQuery({ new: '1' }, { push: true })
  return (
    <Page
      title={text.title}
      actions={
        <>
          <CopyCall name="table.list" input={input} />
          {allowed && <PageAction label={text.create} keys="c" onRun={create} />}
        </>
      }
    >
      {items.length > 5 && (
        <SearchField
          label={text.find}
          value={find}
          onValue={(value) => setQuery({ find: value })}
        />
      )}
      <Listed
        of={list}
        lines={6}
        empty={
          <EmptyCard icon="tables" title={text.empty}>
            <p>{text.emptyHint}</p>
            {allowed && (
              <>
                <Button icon="plus" onClick={create}>
                  {text.create}
                </Button>
                <p>{text.emptyOr}</p>
                <Code>{commandOf(text.emptyCommand, project)}</Code>
              </>
            )}
          </EmptyCard>
        }
      >
        {() =>
          shown.length === 0 ? (
            <p class="soft">{text.noMatch}</p>
          ) : (
            <div class="table-frame">
              <table class="table" ref={rows}>
                <thead>
                  <tr>
                    <th scope="col">{text.name}</th>
                    <th scope="col">{text.description}</th>
                    <th scope="col" class="number">
                      {text.columns}
                    </th>
                    <th scope="col">{text.changed}</th>
                  </tr>
                </thead>
                <tbody>
                  {shown.map(({ id, name, description, schema, updated_at }) => (
                    <tr key={id}>
                      <td>
                        <a class="mono user-text" {...rowLink} href={`${base}/${id}`}>
                          {name}
                        </a>
                      </td>
                      <td class="soft user-text">{description}</td>
                      <td class="number">{schema.columns.length}</td>
                      <td class="nowrap">
                        <Time at={updated_at} relative />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Listed>
      {query.get('new') === '1' && allowed && (
        <CreateTable project={project} base={base} onClose={() => setQuery({ new: '' })} />
      )}
    </Page>
  )
}
