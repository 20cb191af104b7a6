# Reads what `cargo test -- --show-output` prints, stdout and stderr together. Prints a line for each test program, and
# failures in full. Adds up what really ran, and appends "passed failed" to the file `totals` and a line for each
# skipped test to the file `skips`.
#
# A test program that began and gave no result (crash, time-out) counts as one failure.
# A test that printed "SKIP: reason" is counted by cargo as passed, and here as skipped.

function begin(name) {
    end()
    program = name
    running = 1
    lines = 0
    skipped = 0
    test = ""
}

function end() {
    if (running) {
        failed++
        printf "  %-60s NO RESULT; its last lines:\n", program
        for (n = (lines > 30 ? lines - 30 : 0) + 1; n <= lines; n++) print "    " last[n % 30]
    }
    running = 0
    failing = 0
}

function skip(reason) {
    if (match(reason, /^root_[a-z0-9_]+: /)) { # "SKIP: name: reason", past libtest
        test = substr(reason, 1, RLENGTH - 2)
        reason = substr(reason, RLENGTH + 1)
    }
    if (test in reasons) return
    reasons[test] = reason
    printf "  %s: %s\n", test, reason >> skips
    skipped++
}

# "Running unittests src/lib.rs (target/debug/deps/weir_ring-0123456789abcdef)"
/^ +Running / {
    name = $NF
    gsub(/^.*\/|-[0-9a-f]+\)$/, "", name)
    begin(name ($2 == "unittests" ? "" : " " $2))
    next
}
/^ +Doc-tests / { begin($2 " (documentation)"); next }

running { last[++lines % 30] = $0 }

# A test's own output stands between such headers; output that libtest does not catch follows "test NAME ... ".
/^---- .* stdout ----$/ { test = $2 }
/^test .* \.\.\. / { test = $2 }
/SKIP: / && running { skip(substr($0, index($0, "SKIP: ") + 6)) }
/^test .* \.\.\. ignored/ { skip(/ignored, / ? substr($0, index($0, "ignored, ") + 9) : "ignored") }

/^failures:$/ { failing = 1 }

# "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s"
/^test result: / {
    running = failing = 0
    passed += $4 + $8 - skipped
    failed += $6
    if ($4 + $6 + $8 > 0) {
        printf "  %-60s %4d passed", program, $4 + $8 - skipped
        if ($6 > 0) printf ", %d FAILED", $6
        if (skipped > 0) printf ", %d skipped", skipped
        printf "  %s\n", $NF
    }
    skipped = 0
    delete reasons
    fflush()
    next
}

failing || (!running && /^error/) || /^bounded: / { print; fflush() }

END {
    end()
    print passed + 0, failed + 0 >> totals
}
