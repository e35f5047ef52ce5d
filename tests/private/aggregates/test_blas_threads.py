"""Matrix products within a fold take one thread each, and afterwards as many as before."""

import threading

from threadpoolctl import ThreadpoolController

from sfumato.private.aggregates.blas_threads import one_blas_thread


def blas_threads():
    return [
        library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"
    ]


def test_limits_are_restored_by_the_last_who_leaves():
    before, entered, leave = blas_threads(), threading.Event(), threading.Event()

    def stay():
        with one_blas_thread():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=stay)
    with one_blas_thread():
        other.start()
        assert entered.wait(10)
        assert set(blas_threads()) <= {1}
    assert set(blas_threads()) <= {1}  # the other thread is still inside
    leave.set()
    other.join()
    assert blas_threads() == before
