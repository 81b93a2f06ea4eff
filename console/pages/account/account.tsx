/** The account page: the signed-in person, sessions, tokens, preferences and shortcuts. */
import { Tabs } from '../../design/tabs.tsx'
import { Page } from '../../shell/page.tsx'
import { Preferences, Shortcuts } from './choices.tsx'
import { MyTokens } from './my-tokens.tsx'
import { Overview } from './overview.tsx'
import { Sessions } from './sessions.tsx'
import { accountText as text } from './text.ts'

export default function AccountPage() {
  return (
    <Page title={text.title}>
      <Tabs
        label={text.title}
        tabs={[
          { id: 'you', label: text.overview, content: () => <Overview /> },
          { id: 'sessions', label: text.sessions, content: () => <Sessions /> },
          { id: 'tokens', label: text.tokens, content: () => <MyTokens /> },
          { id: 'preferences', label: text.preferences, content: () => <Preferences /> },
          { id: 'shortcuts', label: text.shortcuts, content: () => <Shortcuts /> },
        ]}
      />
    </Page>
  )
}
